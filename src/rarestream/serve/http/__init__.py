"""The service over HTTP: `run` listens, `Application` answers, `Settings` say how."""

from rarestream.errors import MissingExtraError

try:
    import httptools  # noqa: F401
    import msgspec  # noqa: F401
    import prometheus_client  # noqa: F401
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as missing:
    raise MissingExtraError(f'Serving needs the package {missing.name}: pip install "rarestream[serve]"') from None

from rarestream.serve.http.application import Application
from rarestream.serve.http.server import Runner, run
from rarestream.serve.http.settings import ServerError, Settings

__all__ = ["Application", "Runner", "ServerError", "Settings", "run"]
