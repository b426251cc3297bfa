# Candelabra with its kernels for the CPU, from the wheels in dist/: nox -s images, or nox -s wheels
# and docker build -f docker/cpu.Dockerfile . The target "smoke" trains the demo as the user of the
# image; the image that is built by default is without it. BASE has the Python of the wheels.
ARG BASE=docker.io/library/python:3.11-slim

FROM ${BASE} AS installed
COPY dist/*.whl /wheels/
# A bundle of certificates for networks that have their own, mounted by tools/build_images.py.
ARG PIP_CERT
ENV PIP_DISABLE_PIP_VERSION_CHECK=1
# Packages of ours come from the wheels alone.
RUN python3 -m venv /opt/candelabra \
  && /opt/candelabra/bin/pip install --no-cache-dir pluggy numpy \
  && /opt/candelabra/bin/pip install --no-cache-dir --no-index --find-links /wheels candelabra \
  && /opt/candelabra/bin/pip uninstall --yes --quiet pip setuptools \
  && find /opt/candelabra -name __pycache__ -type d -prune -exec rm -r {} +

FROM ${BASE} AS image
LABEL org.opencontainers.image.title="Candelabra" org.opencontainers.image.licenses="BSD-3-Clause"
RUN useradd --create-home --uid 1000 candelabra
COPY --from=installed /opt/candelabra /opt/candelabra
ENV PATH=/opt/candelabra/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER candelabra
WORKDIR /home/candelabra
CMD ["python3"]

FROM image AS smoke
ARG PIP_CERT
COPY examples/digits.py /home/candelabra/digits.py
RUN python3 -m candelabra \
  && python3 -m venv /tmp/demo \
  && PYTHONPATH=$(python3 -c "import site; print(site.getsitepackages()[0])") \
  && export PYTHONPATH \
  && /tmp/demo/bin/pip install --no-cache-dir --quiet scikit-learn tqdm matplotlib \
  && /tmp/demo/bin/python /home/candelabra/digits.py --epochs 3 --output /tmp/output

FROM image
