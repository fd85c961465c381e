from __future__ import annotations

import os
import signal
import threading

import pytest
from hypothesis import settings

from safespn.engine import backends
from tests.processes import COMMAND, call

# A shell that runs the tests in the background ignores interrupts, and processes started here would inherit that.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure. Examples are the same in every run, so that a failure comes from the change at hand;
# where SAFESPN_EXAMPLES is "fresh", as in CI, they are new each time, and a failure prints the line that repeats it.
# "many" are fresh too, and more where a test asks for the number of the profile.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("fresh", deadline=None, derandomize=False, print_blob=True)
settings.register_profile("many", settings.get_profile("fresh"), max_examples=1000)
settings.load_profile(os.environ.get("SAFESPN_EXAMPLES", "same"))


@pytest.fixture(autouse=True)
def _one_backend_per_test(monkeypatch):
    """Stay with the numpy pass, so that rounding does not depend on what other tests have done before."""
    monkeypatch.setattr(backends._State, "loaded", False)
    monkeypatch.setattr(backends._State, "work_in_numpy", float("-inf"))
    monkeypatch.delenv("SAFESPN_ENGINE", raising=False)


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory):
    """The demo, run once as a process, and the folder where it ran; whoever asks for it is of the group "demo"."""
    if not COMMAND.exists():
        pytest.skip("the command safespn is not installed")
    folder = tmp_path_factory.mktemp("demo")
    return call("demo", folder=folder), folder


@pytest.fixture(params=["numpy", "compiled"])
def backend(request, monkeypatch):
    """Run a test with the plain numpy pass and again with the compiled one."""
    monkeypatch.setattr(backends._State, "loaded", request.param == "compiled")
    return request.param
