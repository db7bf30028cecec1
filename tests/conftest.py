"""RARESTREAM_NATIVE names another build of the compiled core to test in place of the installed one: the sanitized one."""

import importlib.util
import os
import sys

from hypothesis import settings

if path := os.environ.get("RARESTREAM_NATIVE"):
    spec = importlib.util.spec_from_file_location("rarestream._native", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["rarestream._native"] = module
    spec.loader.exec_module(module)

# Slow machines and sanitized builds must not fail a property for being slow.
settings.register_profile("rarestream", deadline=None, print_blob=True)
settings.load_profile("rarestream")
