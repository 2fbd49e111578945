"""``POST /api/feedback``: what people say of a run."""

from __future__ import annotations

from aiohttp import web

from casenotes.core.errors import InvalidInput, NotFound
from casenotes.entrypoints.http import fields, shapes
from casenotes.entrypoints.http.bodies import read_object
from casenotes.entrypoints.http.envelope import failure, success
from casenotes.entrypoints.http.keys import SERVICE


async def give_feedback(request: web.Request) -> web.Response:
    """Bind a rating to a run and say to which; 404 in a shape of its own when there is nothing to bind to."""
    body = await read_object(request)
    session_id, run_id = fields.session_id(body), fields.run_id_or_none(body)
    rating, comment = fields.optional_text(body, "feedback"), fields.optional_text(body, "comment")
    if rating is None:
        raise InvalidInput("feedback", "must be 'useful' or 'not_useful'")
    try:
        receipt = await request.app[SERVICE].feedback.give(session_id, rating, run_id=run_id, comment=comment)
    except NotFound as absent:
        return failure(404, str(absent), shapes.refused_feedback(session_id, str(absent)))
    return success(shapes.receipt(receipt))
