"""The server that Prefect is set to use: what is none is refused in words, and the console is quiet."""

import http.server
import io
import logging
import threading

import pytest
from prefect.logging.handlers import PrefectConsoleHandler
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.server import quiet_console, refuse_unreachable
from ibpdist.base.errors import ClusterLost, UsageError


@pytest.fixture
def other():
    """The address of a server that is not one of Prefect."""
    served = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{served.server_port}/api"
    served.shutdown()
    served.server_close()


@pytest.mark.parametrize(
    "url",
    ["notaurl", "http://", "/api", "ftp://127.0.0.1/api", "http://127.0.0.1:99999/api", "http://[::1/api"],
)
def test_what_is_no_address_is_refused_unasked(url):
    with pytest.raises(UsageError, match="expected an address such as"):
        refuse_unreachable(url)


def test_another_server_is_none(other):
    url, said = f"http://me:secret@{other}", f"no Prefect server can be reached at http://{other} "
    with temporary_settings({PREFECT_API_URL: url}), pytest.raises(ClusterLost, match=said) as refused:
        refuse_unreachable(url)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_password_is_not_told():
    with pytest.raises(UsageError) as refused:
        refuse_unreachable("ftp://me:secret@127.0.0.1/api")
    assert "secret" not in str(refused.value)


@pytest.fixture
def console(monkeypatch):
    """What is said on the console, and what another handler is given."""
    said, given, root = io.StringIO(), [], logging.getLogger()

    class Server(logging.Handler):
        def emit(self, record):
            given.append(record)

    shown = PrefectConsoleHandler(said)
    shown.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    monkeypatch.setattr(root, "handlers", [shown, Server()])
    return said, given


def test_a_failure_of_a_flow_is_one_line_here_and_whole_on_the_server(console):
    said, given = console
    quiet_console()
    quiet_console()
    for name in ("prefect.engine", "other"):
        logging.getLogger(name).error("failed", exc_info=UsageError("no such file"))
    assert said.getvalue() == "ERROR failed\n" * 2 + "ibpdist.base.errors.UsageError: no such file\n"
    assert all(record.exc_info for record in given)
