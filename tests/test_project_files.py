"""Files that only other programs read (GitHub, pre-commit, citation tools) are valid, and agree with the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import rarestream

HOME = Path(__file__).parent.parent
WORKFLOWS = sorted((HOME / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((HOME / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def loaded(path: Path) -> dict:
    return yaml.safe_load(path.read_text("utf-8"))


def make_targets() -> set[str]:
    return set(re.findall(r"^([\w./-]+):(?!=)", (HOME / "Makefile").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_triggers_and_jobs_and_calls_make_targets_that_exist(path: Path):
    workflow = loaded(path)
    assert workflow["name"]
    assert workflow[True]  # YAML 1.1 reads the key `on` as a boolean
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        assert job["timeout-minutes"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", step.get("uses", "a/b@v1.0.0")), step
            assert set(re.findall(r"\bmake ([\w-]+)", step.get("run", ""))) <= make_targets()


def test_the_workflows_test_and_build_for_every_supported_python():
    tests = loaded(HOME / ".github" / "workflows" / "test.yml")
    assert tests["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["requires-python"] == f">={PYTHONS[0]}"
    assert project["tool"]["cibuildwheel"]["build"] == [f"cp{version.replace('.', '')}-*" for version in PYTHONS]


def test_wheels_are_built_and_tested_for_every_system_and_only_those_not_seen_yet_may_fail():
    wheels = loaded(HOME / ".github" / "workflows" / "wheels.yml")["jobs"]["wheels"]
    systems = {one["system"]: one["unseen"] for one in wheels["strategy"]["matrix"]["include"]}
    assert systems == {
        "linux-x86_64": False,
        "linux-aarch64": False,
        "macos-arm64": True,
        "macos-x86_64": True,
        "windows-amd64": True,
    }
    assert wheels["continue-on-error"] == "${{ matrix.unseen }}"
    settings = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))
    named = [name for name in settings["project"]["classifiers"] if name.startswith("Operating System")]
    assert named == ["Operating System :: POSIX :: Linux"]  # what was not seen is not claimed
    assert all(settings["tool"]["cibuildwheel"][one].get("archs") for one in ("linux", "macos", "windows"))


def test_the_package_needs_only_what_it_was_designed_to_need():
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
    assert [re.split(r"[>=]", need)[0] for need in project["dependencies"]] == ["numpy", "scipy", "safetensors"]
    assert set(project["urls"]) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    versions = [name.rsplit(" ", 1)[1] for name in project["classifiers"] if "Python :: 3." in name]
    assert versions == PYTHONS


def test_pre_commit_runs_the_projects_own_tools_and_downloads_nothing():
    repositories = loaded(HOME / ".pre-commit-config.yaml")["repos"]
    assert [one["repo"] for one in repositories] == ["local"]
    tools = []
    for hook in repositories[0]["hooks"]:
        assert hook["language"] == "system"
        assert hook["id"]
        assert hook["name"]
        tools.append(hook["entry"].split()[0])
    (lint,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (HOME / "Makefile").read_text("utf-8"), re.MULTILINE)
    checked = re.findall(r"^\t\$\(BIN\)/([\w-]+)", lint, re.MULTILINE)
    assert tools == [f".venv/bin/{tool}" for tool in checked]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_has_what_github_requires(path: Path):
    form = loaded(path)
    if path.stem == "config":
        assert isinstance(form["blank_issues_enabled"], bool)
        return
    assert form["name"]
    assert form["description"]
    assert form["body"]
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)
    assert all(field["attributes"]["label"] for field in form["body"])


def test_the_citation_has_what_the_format_requires_and_names_this_version():
    citation = loaded(HOME / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"]
    assert citation["title"] == "rarestream"
    assert citation["type"] == "software"
    assert citation["version"] == rarestream.__version__
    assert all("name" in author for author in citation["authors"])
    (paper,) = citation["references"]
    assert paper["title"] == "Online AUC Optimization for Sparse High-Dimensional Datasets"
    assert [author["family-names"] for author in paper["authors"]] == ["Zhou", "Ying", "Skiena"]
    assert {"type", "title", "authors"} <= set(paper)
    assert paper["year"] == 2020
