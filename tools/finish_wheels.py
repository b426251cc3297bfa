"""Finish wheels for publication: ``python tools/finish_wheels.py WHEEL...``.

Each gets a bill of materials, ``*.dist-info/sboms/NAME.cdx.json`` (CycloneDX, PEP 770), and names
all its licence files in METADATA. It is written again so that the same content gives the same bits:
files in order, with one date and one mode. The date is ``SOURCE_DATE_EPOCH``, or that of the last
commit. Needs cyclonedx-python-lib.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import time
import uuid
import zipfile
from datetime import UTC, datetime
from email.parser import Parser
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).parents[1]
#: Libraries of others that a wheel holds, by the names in its ``bundled.txt``: their names, their
#: licences, and where they come from.
BUNDLED = {
    "mkl_static": ("mkl-static", "LicenseRef-Intel-Simplified-Software-License", "pypi"),
    "onednn_cpu_gomp": ("onednn-cpu-gomp", "Apache-2.0", "pypi"),
    "scipy_openblas32": (
        "scipy-openblas32",
        "BSD-2-Clause AND BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1",
        "pypi",
    ),
    "ducc0": ("ducc0", "BSD-3-Clause", "pypi"),
    "libgomp": ("libgomp", "GPL-3.0-or-later WITH GCC-exception-3.1", "generic"),
}


def epoch() -> int:
    """Return the date that everything gets, in seconds."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        given = subprocess.run(
            ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True
        ).stdout
    return max(int(given), 315532800)  # a zip archive begins in 1980


def bundled_component(line: str) -> Component:
    """Return the component of a line ``NAME VERSION``."""
    key, version = line.split()
    name, license_name, origin = BUNDLED[key]
    is_expression = " " in license_name or license_name.startswith("LicenseRef-")
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        licenses=[LicenseExpression(license_name) if is_expression else DisjunctiveLicense(id=license_name)],
        purl=PackageURL(origin, None, name, version),
        bom_ref=f"{name}@{version}",
    )


def bill(metadata: str, bundled: list[str], stem: str) -> str:
    """Return the bill of materials of a distribution.

    Parameters
    ----------
    metadata
        The text of METADATA.
    bundled
        A line ``NAME VERSION`` for each library of others in the wheel.
    stem
        The file name of the wheel, on which the serial number depends.
    """
    fields = Parser().parsestr(metadata, headersonly=True)
    name, version = str(fields["Name"]), str(fields["Version"])
    urls = dict(str(text).split(", ", 1) for text in fields.get_all("Project-URL", []))
    this = Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        description=fields["Summary"],
        supplier=OrganizationalEntity(name=str(fields["Author"])),
        licenses=[LicenseExpression(str(fields["License-Expression"]))],
        purl=PackageURL("pypi", None, name, version),
        bom_ref=f"{name}@{version}",
        external_references=[ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(urls["Source"]))],
    )
    contents = [bundled_component(line) for line in bundled]
    needs = []
    for requirement in map(str, fields.get_all("Requires-Dist", [])):
        if "extra ==" in requirement:
            continue
        other = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        needs.append(
            Component(
                name=other,
                type=ComponentType.LIBRARY,
                purl=PackageURL("pypi", None, other),
                bom_ref=other,
                properties=[Property(name="candelabra:requirement", value=requirement)],
            )
        )
    bom = Bom(components=[*contents, *needs], serial_number=uuid.uuid5(uuid.NAMESPACE_URL, stem))
    bom.metadata.timestamp = datetime.fromtimestamp(epoch(), UTC)
    bom.metadata.component = this
    bom.register_dependency(this, [*contents, *needs])
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def with_licenses(metadata: str, paths: list[str]) -> str:
    """Return METADATA that names all licence files of the wheel (PEP 639), those of libraries too
    that the build found.
    """
    head, blank, text = metadata.partition("\n\n")
    lines = head.split("\n")
    named = [f"License-File: {path}" for path in paths]
    last = max((place for place, line in enumerate(lines) if line.startswith("License-")), default=len(lines) - 1)
    lines[last + 1 : last + 1] = [line for line in named if line not in lines]
    return "\n".join(lines) + blank + text


def record_line(name: str, content: bytes) -> str:
    """Return the line of RECORD of a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f'"{name}",sha256={digest},{len(content)}' if "," in name else f"{name},sha256={digest},{len(content)}"


def finish(wheel: Path) -> str:
    """Write a wheel again, with its bill of materials; return the digest of the result."""
    with zipfile.ZipFile(wheel) as archive:
        contents = {item.filename: archive.read(item) for item in archive.infolist() if not item.is_dir()}
        executable = {item.filename for item in archive.infolist() if item.external_attr >> 16 & 0o100}
    (folder,) = {name.split("/")[0] for name in contents if name.split("/")[0].endswith(".dist-info")}
    name = folder.partition("-")[0]
    bundled = contents.get(f"{folder}/sboms/bundled.txt", b"").decode().splitlines()
    beginning = f"{folder}/licenses/"
    licenses = sorted(path.removeprefix(beginning) for path in contents if path.startswith(beginning))
    metadata = with_licenses(contents[f"{folder}/METADATA"].decode(), licenses)
    contents[f"{folder}/METADATA"] = metadata.encode()
    contents[f"{folder}/sboms/{name}.cdx.json"] = bill(metadata, bundled, wheel.stem).encode()
    record = f"{folder}/RECORD"
    del contents[record]
    # RECORD is last, and what describes the distribution before it, as the format recommends.
    order = sorted(contents, key=lambda path: (path.startswith(f"{folder}/"), path))
    lines = [record_line(path, contents[path]) for path in order]
    contents[record] = ("\n".join([*lines, f"{record},,"]) + "\n").encode()
    date = time.gmtime(epoch())[:6]
    beside = wheel.with_suffix(".part")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in [*order, record]:
            item = zipfile.ZipInfo(path, date)
            item.compress_type = zipfile.ZIP_DEFLATED
            item.create_system = 3
            item.external_attr = (0o100755 if path in executable else 0o100644) << 16
            archive.writestr(item, contents[path], compresslevel=6)
    os.replace(beside, wheel)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def main() -> None:
    """Finish the given wheels, and print their digests."""
    for name in sys.argv[1:]:
        print(f"{finish(Path(name))}  {Path(name).name}")


if __name__ == "__main__":
    main()
