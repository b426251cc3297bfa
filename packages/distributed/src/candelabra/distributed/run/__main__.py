"""``python -m candelabra.distributed.run``."""

import sys

from . import main

sys.exit(main())
