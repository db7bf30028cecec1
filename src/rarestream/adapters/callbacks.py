"""The callbacks of scikit-learn 1.9 and newer: progress bars, learning curves, early ends of a fit.

A fit has a task for each pass, and a pass one for each of up to twenty pieces of its rows. Cutting a pass into pieces
changes no bit of the model. Without callbacks nothing of this happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rarestream.blocks import Block
from rarestream.model import Model

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin", "Tasks", "with_callbacks"]

PIECES = 20  # of a pass


class Tasks:
    """Tells the callbacks of a classifier how far its fit is.

    Parameters
    ----------
    classifier : StreamClassifier
        The one that is fitted.
    data : mapping
        X, y and metadata, as callbacks get them.
    passes : int
        The most passes that the fit takes.
    fitted : callable
        Returns the attributes that a classifier has if the fit ends now.
    """

    def __init__(
        self, classifier: Any, data: Mapping[str, Any], passes: int, fitted: Callable[[], dict[str, Any]]
    ) -> None:
        self._told: dict[str, Any] = {"estimator": classifier, **data}
        self._fitted = fitted
        self._root: Any = None
        if hasattr(classifier, "_skl_callbacks") or hasattr(classifier, "_parent_callback_ctx"):
            self._root = classifier._init_callback_context(max_subtasks=passes)
            self._root.call_on_fit_task_begin(**self._told)

    def learn(self, model: Model, rows: Block, again: bool) -> bool:
        """Learn the rows of a pass; return whether a callback wants the fit to end."""
        if self._root is None:
            model.learn(rows, again=again)
            return False
        size = max(1, -(-len(rows) // PIECES))
        starts = range(0, len(rows), size)
        task = self._root.subcontext(task_name="pass", max_subtasks=len(starts))
        task.call_on_fit_task_begin(**self._told)
        stop = False
        for start in starts:
            piece = task.subcontext(task_name="rows")
            piece.call_on_fit_task_begin(**self._told)
            model.learn(rows[start : start + size], again=again)
            stop = bool(self._end(piece))
            if stop:
                break
        return bool(self._end(task)) or stop

    def end(self) -> None:
        """Say that the fit has ended."""
        if self._root is not None:
            self._end(self._root)

    def _end(self, task: Any) -> Any:
        return task.call_on_fit_task_end(**self._told, reconstruction_attributes=self._fitted)
