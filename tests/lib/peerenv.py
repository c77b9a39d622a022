"""Python packages that only tests need, put by pip into a folder under build/: independent programs to compare with."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.environ.get("PN_ROOT", os.getcwd())


def folder(*packages):
    """The folder that holds these packages ("name==version"), or (None, why). Made once; needs the network then."""
    peers = os.path.join(ROOT, "build", "peers")
    target = os.path.join(peers, packages[0].replace("==", "-"))
    if os.path.isdir(target):
        return target, ""
    os.makedirs(peers, exist_ok=True)
    half = tempfile.mkdtemp(prefix="half.", dir=peers)
    try:
        r = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-cache-dir", "--retries", "2", "--only-binary",
                            ":all:", "--target", half, *packages], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=240)
        why = r.stdout.decode(errors="replace").strip().split("\n")[-1]
        if r.returncode == 0 and not os.path.isdir(target):
            os.rename(half, target)
    except (OSError, subprocess.TimeoutExpired) as e:
        why = str(e)
    shutil.rmtree(half, ignore_errors=True)
    if not os.path.isdir(target):
        return None, f"download of {' '.join(packages)} failed: {why}"
    return target, ""
