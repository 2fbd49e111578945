"""Databases on the test run's PostgreSQL server: a template for each revision, and a fresh copy for each test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from attrs import define, field
from sqlalchemy import Table, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from casenotes.adapters.migration import upgrade


@define
class PostgresDatabases:
    """Makes databases on a server. ``url`` names its maintenance database; ``prefix`` keeps workers apart."""

    url: str
    prefix: str
    _templates: dict[str, str] = field(factory=dict, init=False)
    _numbers: Iterator[int] = field(factory=count, init=False)

    @contextmanager
    def copy(self, revision: str) -> Iterator[str]:
        """The URL of a database at this revision, which is dropped at the end of the block."""
        with self._database(self._template(revision)) as name:
            yield self._url_of(name)

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The URL of a database without tables, which is dropped at the end of the block."""
        with self._database("template0") as name:
            yield self._url_of(name)

    def drop_templates(self) -> None:
        for name in self._templates.values():
            self._run(f"drop database {name} with (force)")
        self._templates.clear()

    @contextmanager
    def _database(self, template: str) -> Iterator[str]:
        name = f"{self.prefix}_{next(self._numbers)}"
        self._run(f"create database {name} template {template} strategy file_copy")
        try:
            yield name
        finally:
            self._run(f"drop database {name} with (force)")

    def _template(self, revision: str) -> str:
        if revision not in self._templates:
            name = f"{self.prefix}_at_{revision}"
            self._run(f"create database {name} template template0")
            asyncio.run(upgrade(self._url_of(name), revision))
            self._templates[revision] = name
        return self._templates[revision]

    def _url_of(self, database: str) -> str:
        return make_url(self.url).set(database=database).render_as_string(hide_password=False)

    def _run(self, statement: str) -> None:
        async def run() -> None:
            engine = create_async_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
            async with engine.connect() as connection:
                await connection.execute(text(statement))
            await engine.dispose()

        asyncio.run(run())


async def rows(url: str, query: str, **values: object) -> list[dict[str, Any]]:
    """What a query finds in the database itself, past all that is ours; committed, if it writes."""
    engine = create_async_engine(url, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            found = await connection.execute(text(query), values)
            return [dict(row) for row in found.mappings()] if found.returns_rows else []
    finally:
        await engine.dispose()


async def put_rows(url: str, table: Table, *new: Mapping[str, object]) -> None:
    """Put rows into a table of the database at this URL, past all that is ours."""
    engine = create_async_engine(url, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            await connection.execute(table.insert(), list(new))
    finally:
        await engine.dispose()


async def until(url: str, query: str, count: int) -> None:
    """Wait until a query finds that many rows."""
    async with asyncio.timeout(60):
        while True:
            if len(await rows(url, query)) == count:
                return
            await asyncio.sleep(0.02)
