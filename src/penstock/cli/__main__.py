"""`python -m penstock.cli`, the same as `penstock`."""

import sys

from penstock.cli import main

sys.exit(main())
