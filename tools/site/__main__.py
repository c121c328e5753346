"""``python -m tools.site``: the generated reference, then the site."""

import argparse
import sys
from pathlib import Path

from tools.site import reference
from tools.site.build import build
from tools.site.nav import ROOT, Unplaced


def main() -> int:
    """Make site/; 1 where a link leads nowhere or a page has no place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "site", help="the folder; it is replaced")
    target: Path = parser.parse_args().into
    reference.write()
    try:
        broken = build(target)
    except Unplaced as error:
        sys.exit(f"make docs: {error}")
    for each in broken:
        print(f"leads nowhere: {each}", file=sys.stderr)
    if broken:
        return 1
    print(f"{len([*target.rglob('*.html')])} pages: {target / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
