"""Release one package: ``nox -s release -- PACKAGE VERSION [--dry-run]``, see CONTRIBUTING.md.

Checks the state, sets the version, titles the section of the changelog, runs the tests, commits,
tags, and prints what to upload. Whatever fails leaves the tree as it was.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
#: The branch that releases are made from.
BRANCH = "main"
#: The host that stands for the project's address until it has one (RFC 2606).
NO_ADDRESS = ".example"
TAG = re.compile(r"(candelabra(?:-[a-z]+)*)-v(\d+(?:\.\d+)*)")
_HEADING = re.compile(r"^## (.*)$", re.M)


class RefusedError(Exception):
    """The release is not made, and why."""


def git(root: Path, *arguments: str) -> str:
    """Return what git prints."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def project(root: Path, package: str) -> dict[str, Any]:
    """Return pyproject.toml of a package."""
    path = root / "packages" / package / "pyproject.toml"
    if not path.exists():
        packages = sorted(found.parent.name for found in root.glob("packages/*/pyproject.toml"))
        raise RefusedError(f"there is no package {package!r}; there are {', '.join(packages)}")
    return tomllib.loads(path.read_text())


def version_file(root: Path, package: str) -> Path:
    """Return the file that has the version of a package."""
    settings = project(root, package)
    tools = settings.get("tool", {})
    hatch = tools.get("hatch", {}).get("version", {}).get("path")
    scikit = tools.get("scikit-build", {}).get("metadata", {}).get("version", {}).get("input")
    return root / "packages" / package / (hatch or scikit or "pyproject.toml")


_VERSION = re.compile(r'^(__version__|version) = "([^"]+)"', re.M)


def current_version(root: Path, package: str) -> Version:
    """Return the version that a package has."""
    found = _VERSION.search(version_file(root, package).read_text())
    if found is None:
        raise RefusedError(f"{version_file(root, package)} has no version")
    return Version(found[2])


def released(root: Path, distribution: str) -> list[Version]:
    """Return the versions of a distribution that have tags, in order."""
    tags = (TAG.fullmatch(tag) for tag in git(root, "tag", "--list").splitlines())
    return sorted(Version(tag[2]) for tag in tags if tag is not None and tag[1] == distribution)


def excluded_by(root: Path, distribution: str, version: Version) -> list[str]:
    """Return the packages of the repository whose requirements leave a version out."""
    found = []
    for path in sorted(root.glob("packages/*/pyproject.toml")):
        settings = tomllib.loads(path.read_text())["project"]
        extras = settings.get("optional-dependencies", {}).items()
        optional = (text for name, texts in extras if name != "test" for text in texts)
        for text in [*settings.get("dependencies", []), *optional]:
            requirement = Requirement(text)
            if requirement.name == distribution and not requirement.specifier.contains(version, prereleases=True):
                found.append(f"{path.parent.name} ({text})")
    return list(dict.fromkeys(found))


def titled(changelog: str, version: Version) -> str:
    """Return a changelog whose first section has the version as its title.

    Raises
    ------
    RefusedError
        If the first section is that of another version, or has no entry.
    """
    heading = _HEADING.search(changelog)
    if heading is None:
        raise RefusedError("the changelog has no section")
    title = heading[1].strip()
    accepted = {"unreleased", str(version), f"{version} (unreleased)"}
    if title.lower() not in accepted:
        raise RefusedError(f"the first section of the changelog is {title!r}; title it '{version} (unreleased)'")
    following = _HEADING.search(changelog, heading.end())
    section = changelog[heading.end() : following.start() if following else len(changelog)]
    if not section.strip():
        raise RefusedError(f"the section {title!r} of the changelog has no entry")
    return f"{changelog[: heading.start()]}## {version}{changelog[heading.end() :]}"


def check(root: Path, package: str, version: Version) -> None:
    """Refuse a state that no release is made of.

    Raises
    ------
    RefusedError
        With all that has to be mended first.
    """
    settings = project(root, package)["project"]
    distribution = settings["name"]
    faults = []
    if (branch := git(root, "rev-parse", "--abbrev-ref", "HEAD")) != BRANCH:
        faults.append(f"the branch is {branch}, not {BRANCH}")
    if changed := git(root, "status", "--porcelain"):
        faults.append(f"there are changes that are not committed:\n{changed}")
    now, before = current_version(root, package), released(root, distribution)
    if version in before:
        faults.append(f"the tag {distribution}-v{version} is there already")
    elif before and version < before[-1]:
        faults.append(f"{version} is older than {before[-1]}, which is released")
    elif version < now:
        faults.append(f"{version} is older than {now}, which {version_file(root, package).name} says")
    if left_out := excluded_by(root, distribution, version):
        faults.append(
            f"{version} is outside of what these say that they work with; widen that, also in their register(), "
            f"or release them with it: {', '.join(left_out)}"
        )
    if NO_ADDRESS in settings.get("urls", {}).get("Homepage", NO_ADDRESS):
        faults.append(f"the project has no address: set one by tools/set_address.py (it is {NO_ADDRESS} now)")
    try:
        titled((root / "packages" / package / "CHANGELOG.md").read_text(), version)
    except RefusedError as error:
        faults.append(str(error))
    if faults:
        raise RefusedError("\n".join(f"- {fault}" for fault in faults))


def uploads(root: Path, package: str, version: Version) -> list[str]:
    """Return the lines that say what to upload."""
    settings = project(root, package)
    distribution = settings["project"]["name"]
    stem = f"{distribution.replace('-', '_')}-{version}"
    lines = [f"git push origin {BRANCH} {distribution}-v{version}"]
    if settings["build-system"]["build-backend"].startswith("hatchling"):
        files = f"dist/{stem}-py3-none-any.whl dist/{stem}.tar.gz"
    else:
        lines.append("gh run download --name wheels --dir dist/upload    # of the workflow wheels, for this tag")
        files = f"dist/upload/{package}/{stem}-*.whl dist/upload/{package}/{stem}.tar.gz"
    return [*lines, f"python -m twine check --strict {files}", f"python -m twine upload {files}"]


def make(root: Path, package: str, version: Version, test: Callable[[], None]) -> list[str]:
    """Make a release, and return the lines that say what to upload."""
    check(root, package, version)
    distribution = project(root, package)["project"]["name"]
    source, changelog = version_file(root, package), root / "packages" / package / "CHANGELOG.md"
    before = {path: path.read_text() for path in (source, changelog)}
    try:
        source.write_text(_VERSION.sub(rf'\g<1> = "{version}"', before[source], count=1))
        changelog.write_text(titled(before[changelog], version))
        test()
    except BaseException:
        for path, text in before.items():
            path.write_text(text)
        raise
    git(root, "add", *(str(path) for path in before))
    if git(root, "status", "--porcelain"):
        git(root, "commit", "-m", f"{package} {version}")
    git(root, "tag", "-a", f"{distribution}-v{version}", "-m", f"{distribution} {version}")
    return uploads(root, package, version)


def main(arguments: list[str] | None = None) -> int:
    """Make the release that the arguments say."""
    parser = argparse.ArgumentParser(prog="nox -s release --", description="Release one package.")
    parser.add_argument("package", help="its folder in packages/, such as nn")
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="only check, and say what would be uploaded")
    given = parser.parse_args(arguments)
    sessions = [f"tests-{given.package}", "lint", "wheels", "tests-released"]
    if given.package in ("candelabra", "backend-cuda"):
        sessions[0] = "cuda" if given.package == "backend-cuda" else "tests-integration"

    def test() -> None:
        subprocess.run([sys.executable, "-m", "nox", "-s", *sessions], cwd=ROOT, check=True)

    try:
        version = Version(given.version)
        if given.dry_run:
            check(ROOT, given.package, version)
            lines = uploads(ROOT, given.package, version)
        else:
            lines = make(ROOT, given.package, version, test)
    except (RefusedError, InvalidVersion) as error:
        print(f"refused:\n{error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"refused: {' '.join(map(str, error.cmd))} failed; the tree is as it was", file=sys.stderr)
        return 1
    print("\n".join(["to publish it:", *lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
