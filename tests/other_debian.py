"""A folder that holds the Debian release whose oneDNN is of the other major version than this machine's: 2 in Debian 12,
3 in Debian 13. Made by debootstrap, entered by chroot; so it takes root."""
import os
import pathlib
import re
import shutil
import subprocess

RELEASES = {2: "trixie", 3: "bookworm"}  # by this machine's version of oneDNN
BARE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "TANDEM_DATA": "/root/data"}


def onednn_version():
    """The major version installed here, or None."""
    header = pathlib.Path("/usr/include/oneapi/dnnl/dnnl_version.h")
    found = re.search(r"DNNL_VERSION_MAJOR\s+(\d+)", header.read_text()) if header.exists() else None
    return int(found.group(1)) if found else None


def mirror():
    """Where this machine's own Debian packages come from, or Debian's usual address."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"],
                            capture_output=True, text=True)
    places = [line for line in listed.stdout.split() if "security" not in line]
    return places[0] if places else "http://deb.debian.org/debian"


def obstacle():
    """Why there can be no such folder here, or None."""
    if os.geteuid() != 0:
        return "takes root"
    if not shutil.which("debootstrap"):
        return "debootstrap is not installed"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        return "/proc cannot be mounted in it here"
    if onednn_version() not in RELEASES:
        return "there is no oneDNN here to differ from"
    return None


def make(root, log):
    """Fills the folder, once; True when it is there."""
    if (root / "made").exists():
        return True
    shutil.rmtree(root, ignore_errors=True)
    release = RELEASES[onednn_version()]
    made = subprocess.run(["timeout", "600", "debootstrap", "--variant=minbase", release, root, mirror()], stdout=log, stderr=log)
    if made.returncode != 0:
        return False
    shutil.copy("/etc/resolv.conf", root / "etc")
    for settings in pathlib.Path("/etc/apt/apt.conf.d").glob("*proxy*"):
        shutil.copy(settings, root / "etc/apt/apt.conf.d")
    (root / "made").touch()
    return True


def place_of_sources(root):
    return root / "root" / "tandem"


def copy_sources(source, root):
    """The tree without what was built in it, and MNIST."""
    mnist = pathlib.Path(os.environ.get("TANDEM_DATA", "")) / "mnist"
    if mnist.is_dir():
        shutil.copytree(mnist, root / "root" / "data" / "mnist", dirs_exist_ok=True)
    target = place_of_sources(root)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True, ignore=lambda folder, names: {"build", ".git"} & set(names))


def run(root, script, **options):
    """Runs a shell script in the copy of the sources, with /proc there while it runs; its exit status."""
    enter = 'mount --rbind /proc "$0/proc" && exec chroot "$0" sh -ec "cd /root/tandem; $1"'
    return subprocess.run(["unshare", "--mount", "sh", "-ec", enter, root, script], env=BARE, **options).returncode
