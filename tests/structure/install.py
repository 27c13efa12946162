"""Installs the build to a temporary prefix and uses it as a stranger would: by pkg-config and by find_package, in C and
in C++; checks that the shared library exports td_ names and nothing else."""
import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = "tandem 0.1.0, 2 weights"


def run(command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}\nexited with {done.returncode}:\n{done.stdout}")
    return done.stdout


def expect(program, environment=None):
    said = run([program], env=environment).strip()
    if said != EXPECTED:
        sys.exit(f"{program} said {said!r}, expected {EXPECTED!r}")


def check_exports(library):
    names = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", library]).splitlines()]
    foreign = [name for name in names if not name.startswith("td_")]
    if foreign:
        sys.exit(f"{library.name} exports names that do not start with td_: {' '.join(foreign[:20])}")
    if "td_fit_" not in names:
        sys.exit(f"{library.name} does not export td_fit_")


def check_headers(prefix, cc):
    compilers = [[cc, "-x", "c", "-std=c17"]]
    if shutil.which("c++"):
        compilers.append(["c++", "-x", "c++", "-std=c++20"])
    for header in sorted((prefix / "include/tandem").glob("*.h")):
        for compiler in compilers:
            run([*compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{prefix / 'include'}", "-"],
                input=f"#include <tandem/{header.name}>\n")


def by_pkg_config(kind, options, lib, work, cc):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(lib / "pkgconfig"))
    flags = run(["pkg-config", "--cflags", "--libs", *options, "tandem"], env=environment).split()
    program = work / f"pkg-config-{kind}"
    run([cc, "-std=c17", HERE / "consumer/consumer.c", "-o", program, *flags])
    expect(program, dict(os.environ, LD_LIBRARY_PATH=str(lib)))


def by_static_pkg_config(prefix, lib, work, cc):
    """Where the archive lies alone, -ltandem is the archive."""
    alone = work / "static"
    shutil.copytree(prefix, alone, symlinks=True, ignore=lambda folder, names: [name for name in names if ".so" in name])
    by_pkg_config("static", ["--static"], alone / lib.relative_to(prefix), work, cc)


def by_find_package(prefix, work, cmake, cc):
    build = work / "find_package"
    run([cmake, "-S", HERE / "consumer", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={cc}"])
    run([cmake, "--build", build])
    expect(build / "consumer_shared")
    expect(build / "consumer_static")


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "cmake", "cc"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        prefix = work / "prefix"
        run([options.cmake, "--install", options.build, "--prefix", prefix])
        lib = next(prefix.rglob("libtandem.a")).parent
        check_exports(lib / "libtandem.so")
        check_headers(prefix, options.cc)
        by_pkg_config("shared", [], lib, work, options.cc)
        by_static_pkg_config(prefix, lib, work, options.cc)
        by_find_package(prefix, work, options.cmake, options.cc)
        if (pathlib.Path(options.build) / "tandem").exists():
            run([prefix / "bin/tandem", "--version"])


main()
