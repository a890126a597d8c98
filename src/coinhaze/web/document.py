"""The API's document (OpenAPI): what FastAPI makes of the routes, and how the token is sent."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi


def document(app: FastAPI) -> dict[str, Any]:
    """Give the document, made once."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = found.setdefault("components", {})
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
        }
        found["security"] = [{"token": []}]
        # Requests that break the contract get 400 with a problem, not FastAPI's own answer.
        for name in ("HTTPValidationError", "ValidationError"):
            parts.get("schemas", {}).pop(name, None)
        for operations in found["paths"].values():
            for operation in operations.values():
                if "HTTPValidationError" in str(operation["responses"].get("422")):
                    del operation["responses"]["422"]
        app.openapi_schema = found
    return app.openapi_schema
