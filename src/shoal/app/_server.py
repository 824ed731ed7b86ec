"""The page's server: on this machine only, behind a random word in the address."""

import json
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from shoal.app._jobs import (
    PAGE,
    PARQUET,
    ROWS,
    BadRequestError,
    Job,
    JobStore,
    preview,
)
from shoal.exceptions import CodedError

HOST = "127.0.0.1"
FILES = Path(__file__).parent / "page"
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
QUIET = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
Handler = Callable[[Request], Awaitable[Response]]


def make_server(folder: Path, token: str, *, max_mb: float = PAGE.max_mb) -> Starlette:
    """The application, whose addresses all begin with the token.

    Parameters
    ----------
    folder : Path
        Where tables and results are kept.
    token : str
        Without it in the address, there is nothing here.
    max_mb : float, default=200
        Larger files are refused.
    """
    doors = _Doors(JobStore(folder), max_mb)
    routes = [
        Route("/", doors.file),
        Route("/page/{name}", doors.file),
        Route("/jobs", doors.jobs),
        Route("/tables/{name}", doors.upload, methods=["PUT"]),
        Route("/jobs/{id}", doors.job),
        Route("/jobs/{id}", doors.drop, methods=["DELETE"]),
        Route("/jobs/{id}/preview", doors.preview),
        Route("/jobs/{id}/fit", doors.fit, methods=["POST"]),
        Route("/jobs/{id}/cancel", doors.cancel, methods=["POST"]),
        Route("/jobs/{id}/names", doors.names, methods=["POST"]),
        Route("/jobs/{id}/report.html", doors.report),
        Route("/jobs/{id}/files/{name}", doors.result),
    ]
    inside = [
        Route(
            f"/{token}{one.path}", _told(one.endpoint), methods=list(one.methods or ())
        )
        for one in routes
    ]
    # a page elsewhere that calls this machine by another name is not answered
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    return Starlette(routes=inside, middleware=[hosts])


def _told(handler: Handler) -> Handler:
    """The handler, with errors as a line that the page shows."""

    async def answer(request: Request) -> Response:
        try:
            response = await handler(request)
        except CodedError as error:
            told = {"code": error.code, "text": error.text, "hint": error.hint}
            response = JSONResponse({"error": told}, 400)
        except BadRequestError as error:
            response = JSONResponse({"error": {"text": str(error)}}, 400)
        except KeyError:
            response = JSONResponse({"error": {"text": "there is no such table"}}, 404)
        response.headers.update(QUIET)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response

    return answer


class _Doors:
    """What each address does."""

    def __init__(self, store: JobStore, max_mb: float) -> None:
        self.store, self.max_mb = store, max_mb

    def _job(self, request: Request) -> Job:
        return self.store.jobs[request.path_params["id"]]

    async def file(self, request: Request) -> Response:
        """The page, its style and its script."""
        name = request.path_params.get("name", "index.html")
        path = FILES / name
        if path.parent != FILES or path.suffix not in MEDIA or not path.exists():
            raise KeyError(name)
        return FileResponse(path, media_type=MEDIA[path.suffix])

    async def jobs(self, request: Request) -> Response:
        """Every table, the newest first."""
        known = [
            {"id": job.id, "name": job.kept()["name"], "status": job.status()}
            for job in self.store.jobs.values()
        ]
        return JSONResponse({"jobs": known[::-1], "max_mb": self.max_mb})

    async def upload(self, request: Request) -> Response:
        """Take a file, and say what is in it; nothing is kept of one that is bad."""
        name = request.path_params["name"]
        limit = int(self.max_mb * 1e6)
        self._refuse_large(name, int(request.headers.get("content-length", 0)), limit)
        job = self.store.make(name)
        try:
            size = 0
            async with await anyio.open_file(job.table, "wb") as file:
                async for part in request.stream():
                    size += len(part)
                    self._refuse_large(name, size, limit)
                    await file.write(part)
            found = await run_in_threadpool(preview, job.table)
        except BaseException:
            self.store.drop(job)
            raise
        return JSONResponse({"id": job.id, **found}, 201)

    def _refuse_large(self, name: str, size: int, limit: int) -> None:
        if size > limit:
            raise BadRequestError(
                f'"{name}" has {size / 1e6:,.0f} MB or more; this page takes up to '
                f"{self.max_mb:g} MB: use `shoal fit` in a terminal"
            )

    async def preview(self, request: Request) -> Response:
        """What is in a table."""
        found = await run_in_threadpool(preview, self._job(request).table)
        return JSONResponse(found)

    async def job(self, request: Request) -> Response:
        """Where a table stands."""
        return JSONResponse(self._job(request).describe())

    async def fit(self, request: Request) -> Response:
        """Begin to fit."""
        self.store.start(self._job(request), await _content(request))
        return JSONResponse({}, 202)

    async def cancel(self, request: Request) -> Response:
        """Stop a fit."""
        await run_in_threadpool(self._job(request).cancel)
        return JSONResponse({})

    async def names(self, request: Request) -> Response:
        """Name the classes."""
        await run_in_threadpool(self._job(request).rename, await _content(request))
        return JSONResponse({})

    async def drop(self, request: Request) -> Response:
        """Forget a table and its results."""
        self.store.drop(self._job(request))
        return JSONResponse({})

    async def report(self, request: Request) -> Response:
        """The report, which brings a policy of its own."""
        path = self._job(request).run / "report.html"
        if not path.exists():
            raise KeyError("report")
        frame = {"Content-Security-Policy": "frame-ancestors 'self'"}
        return FileResponse(path, media_type="text/html", headers=frame)

    async def result(self, request: Request) -> Response:
        """One file of the results, or all of them."""
        job, name = self._job(request), request.path_params["name"]
        if name == "results.zip" and job.run.is_dir():
            path = await run_in_threadpool(job.packed)
        elif job.run.is_dir() and name in {p.name for p in job.run.iterdir()}:
            path = job.run / name
        elif name == ROWS and (job.run / PARQUET).exists():
            path = await run_in_threadpool(job.rows)
        else:
            raise KeyError(name)
        return FileResponse(path, filename=path.name)


async def _content(request: Request) -> dict[str, Any]:
    try:
        content = json.loads(await request.body())
    except json.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise BadRequestError("expected a JSON object")
    return content


def serve(
    folder: Path,
    *,
    port: int = 0,
    max_mb: float = PAGE.max_mb,
    seconds: float | None = None,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the page until Ctrl-C, or for some seconds.

    Parameters
    ----------
    folder : Path
        Where tables and results are kept.
    port : int, default=0
        A free one when 0.
    max_mb : float, default=200
    seconds : float, default=None
    ready : callable, default=print
        Called with the address once the page can be opened.
    """
    import uvicorn

    token = secrets.token_urlsafe(24)
    config = uvicorn.Config(
        make_server(folder, token, max_mb=max_mb),
        host=HOST,
        port=port,
        log_level="warning",
        access_log=False,  # addresses hold the token
        timeout_graceful_shutdown=1,  # a tab left open must not hold it
    )

    async def run() -> None:
        server = uvicorn.Server(config)
        async with anyio.create_task_group() as tasks:

            async def until_told() -> None:
                with suppress(KeyboardInterrupt):  # SIGTERM, which uvicorn raises anew
                    await server.serve()
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_told)
            while not server.started:
                await anyio.sleep(0.05)
            bound = server.servers[0].sockets[0].getsockname()[1]
            ready(f"http://{HOST}:{bound}/{token}/")
            if seconds is not None:
                await anyio.sleep(seconds)
                server.should_exit = True

    with suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
        anyio.run(run)
