"""Sends what schemathesis makes of the OpenAPI document to a service, and fails on any answer that is not documented.

    python -m tests.serve.http.schemathesis_run --cases 2000

Half of the requests follow the document, half break it. No answer may be a failure of the server, have a status, a type or
a body that the document does not have, accept what the document forbids, or work without the token. /events never ends,
and is left to the other tests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.serve.http.serving import serving

# A row that follows the document may still not be one that the model can take: 422 says so, and is documented.
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,ignored_auth,unsupported_method"
)


def run(cases: int, *extra: str, limit: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run schemathesis with so many cases per endpoint; its output and exit code."""
    with tempfile.TemporaryDirectory() as folder, serving(token=b"secret") as served:
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.address}/openapi.json"),
            *("--max-examples", str(cases), "--checks", CHECKS, "--header", "Authorization: Bearer secret"),
            *("--exclude-path", "/events", "--continue-on-failure", "--warnings", "off", "--no-color"),
            *("--request-timeout", "60", "--suppress-health-check", "all", *extra),
        ]
        # To refuse too many rows with 413 is to refuse them.
        Path(folder, "schemathesis.toml").write_text(
            '[checks]\nnegative_data_rejection.expected-statuses = ["400", "401", "404", "405", "413", "415", "422"]\n'
        )
        root = Path(__file__).parents[3]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")])),
            "SCHEMATHESIS_HOOKS": "tests.serve.http.schemathesis_hooks",
        }
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)


def main() -> int:
    """Run it as a command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--cases", type=int, default=2000, help="for each endpoint")
    parser.add_argument("--seed", type=int, help="of a run to repeat")
    arguments = parser.parse_args()
    seed = [] if arguments.seed is None else ["--seed", str(arguments.seed)]
    done = run(arguments.cases, "--generation-database", "none", *seed)
    print(done.stdout, done.stderr, sep="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
