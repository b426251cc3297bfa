"""The old names of the downloads of `candelabra.hub`."""

from __future__ import annotations

from candelabra.hub import download_url_to_file
from candelabra.hub import load_state_dict_from_url as load_url

__all__ = ["download_url_to_file", "load_url"]
