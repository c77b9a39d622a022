"""A Python with packages that only tests need, in a venv of its own under build/: independent programs to compare with."""
import os
import subprocess
import sys

ROOT = os.environ.get("PN_ROOT", os.getcwd())


def python(*packages):
    """The interpreter that has these packages ("name==version"), or (None, why). Made once; needs the network then."""
    folder = os.path.join(ROOT, "build", "venv-peers")
    exe = os.path.join(folder, "bin", "python3")
    try:
        if not os.path.exists(exe):
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, capture_output=True)
        names = [p.split("==") for p in packages]
        probe = "import importlib.metadata as m\n" + "".join(f"assert m.version({n!r}) == {v!r}\n" for n, v in names)
        if subprocess.run([exe, "-c", probe], capture_output=True).returncode:
            subprocess.run([exe, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "2", *packages],
                           check=True, capture_output=True, timeout=280)
    except (subprocess.SubprocessError, OSError) as e:
        words = getattr(e, "stderr", b"") or b""
        return None, f"download of {' '.join(packages)} failed: {e} {words.decode(errors='replace')[-300:]}"
    return exe, ""
