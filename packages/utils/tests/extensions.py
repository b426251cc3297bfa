"""C operators that tests build at run time."""

from candelabra.utils import cpp_extension


def quick(name, source, functions, **options):
    return cpp_extension.load_inline(name, c_sources=source, functions=functions, extra_cflags=["-O0"], **options)
