-- A database as the old system left it: made by its own tool, without a revision, with every odd kind of row.

CREATE TABLE diagnosis_session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL UNIQUE,
    query TEXT,
    answer TEXT,
    status TEXT,
    agent_flow TEXT,
    self_evaluation JSON,
    feedback TEXT,
    feedback_comment TEXT,
    step_count INTEGER,
    tool_call_count INTEGER,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL
);

CREATE TABLE agent_step (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    step_number INTEGER,
    agent_name TEXT,
    step_type TEXT,
    model TEXT,
    input TEXT,
    output TEXT,
    status TEXT,
    error_message TEXT,
    input_tokens BIGINT,
    output_tokens BIGINT,
    duration_ms BIGINT,
    created_at DATETIME NOT NULL
);

CREATE TABLE tool_invocation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    step_number INTEGER,
    tool_name TEXT,
    arguments JSON,
    result TEXT,
    status TEXT,
    error_message TEXT,
    duration_ms BIGINT,
    created_at DATETIME NOT NULL
);

CREATE TABLE case_library (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    diagnosis_id TEXT NOT NULL,
    query TEXT,
    answer TEXT,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL
);

INSERT INTO diagnosis_session
    (id, session_id, query, answer, status, agent_flow, self_evaluation, feedback, feedback_comment,
     step_count, tool_call_count, created_at, updated_at)
VALUES
    -- finished, rated, with wrong counts
    (1, 'checkout-slow', 'Why is checkout slow?', 'The pool is exhausted.', 'SUCCESS', 'STATE_GRAPH',
     '{"score": 0.75, "checks": ["évidence"]}', 'useful', 'that was it', 99, 99,
     '2025-03-01 10:00:00.000000', '2025-03-01 10:00:42.500000'),
    -- the same name in other letters is another session
    (2, 'Checkout-Slow', 'Why is Checkout slow?', 'It is not.', ' Completed ', '', NULL, NULL, NULL, NULL, NULL,
     '2025-03-01 10:00:00.000000', '2025-03-01 10:00:00.000000'),
    (3, ' checkout-slow ', '', '', 'finished', NULL, NULL, NULL, NULL, 0, 0,
     '2025-03-01 10:00:00.000000', '2025-03-01 10:00:00.000000'),
    -- left by a crash
    (4, 'unfinished', 'Is it DNS?', NULL, 'RUNNING', 'AI_OPS', NULL, NULL, NULL, 1, 0,
     '2025-03-02 08:00:00.000000', '2025-03-02 08:00:01.000000'),
    (5, 'failed', 'Why 502?', NULL, 'FAILED', 'multi-agent', NULL, 'not_useful', NULL, 0, 0,
     '2025-03-02 09:00:00.000000', '2025-03-02 09:00:01.000000'),
    -- nothing known but its name
    (6, 'bare', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     '2025-03-02 10:00:00.000000', '2025-03-02 10:00:00.000000'),
    (7, 'диагноз/100%25?a=b&c#✓ ''; --', 'Почему 50% медленно?', 'Пул исчерпан 🐢', 'SUCCEEDED', 'CHAT', NULL, NULL,
     NULL, 0, 0, '2025-03-03 00:00:00.000001', '2025-03-03 00:00:00.000002'),
    (8, replace(hex(zeroblob(4000)), '00', 's'), 'long', 'long', 'success', 'CHAT', NULL, NULL, NULL, 0, 0,
     '2025-03-04 00:00:00.000000', '2025-03-04 00:00:01.000000'),
    -- times of other makers, and an evaluation that is no JSON
    (9, 'iso-times', 'When?', 'Then.', 'SUCCESS', 'CHAT', 'looks good {', NULL, NULL, 0, 0,
     '2025-03-05T12:00:00.25+02:00', '2025-03-05T10:00:01Z'),
    (10, 'epoch-times', 'When?', 'Then.', 'SUCCESS', 'CHAT', '"fine"', NULL, NULL, 0, 0, 1741168800123, 0),
    (11, 'no-times', 'When?', 'Never.', 'SUCCESS', 'CHAT', NULL, NULL, NULL, 0, 0, 'yesterday', 'today');

INSERT INTO agent_step
    (id, session_id, step_number, agent_name, step_type, model, input, output, status, error_message,
     input_tokens, output_tokens, duration_ms, created_at)
VALUES
    -- out of order, repeated and unnumbered
    (1, 'checkout-slow', 3, 'composer', 'model', 'm', 'in', 'out', 'SUCCESS', NULL, 3000000000, 1, 10,
     '2025-03-01 10:00:03.000000'),
    (2, 'checkout-slow', 1, 'planner', 'model', 'm', 'in', 'out', 'SUCCESS', NULL, 1, 1, 10,
     '2025-03-01 10:00:01.000000'),
    (3, 'checkout-slow', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     '2025-03-01 10:00:01.000000'),
    (4, 'checkout-slow', 2, 'executor', 'model', 'm', 'in', 'out', 'ERROR', 'timed out', 1, 1, 10,
     '2025-03-01 10:00:02.000000'),
    (5, 'checkout-slow', 2, 'executor', 'model', 'm', 'in', 'again', 'SUCCESS', NULL, 1, 1, 10,
     '2025-03-01 10:00:02.000000'),
    (6, 'unfinished', 7, 'planner', 'model', 'm', 'in', NULL, 'RUNNING', NULL, NULL, NULL, NULL,
     '2025-03-02 08:00:00.500000'),
    -- its session is gone
    (7, 'vanished', 1, 'planner', 'model', 'm', 'in', 'out', 'SUCCESS', NULL, 1, 1, 10,
     '2025-02-01 00:00:00.000000');

INSERT INTO tool_invocation
    (id, session_id, step_number, tool_name, arguments, result, status, error_message, duration_ms, created_at)
VALUES
    (1, 'checkout-slow', 2, 'logs.search', '{"q": "100% \"timeout\""}', '312 hits ✓', 'SUCCESS', NULL, 5,
     '2025-03-01 10:00:02.000000'),
    (2, 'checkout-slow', 1, 'metrics.query', '[1]', '[1]', 'SUCCESS', NULL, 5, '2025-03-01 10:00:01.000000'),
    (3, 'checkout-slow', 99, 'logs.search', NULL, NULL, 'FAILED', 'refused', NULL, '2025-03-01 10:00:02.000000'),
    (4, 'checkout-slow', NULL, 'logs.search', NULL, '', 'SUCCESS', NULL, NULL, '2025-03-01 10:00:02.000000'),
    (5, 'vanished', 1, 'logs.search', '{}', 'x', 'SUCCESS', NULL, 5, '2025-02-01 00:00:00.000000'),
    (6, 'Vanished', 1, 'logs.search', '{}', 'x', 'SUCCESS', NULL, 5, '2025-02-01 00:00:00.000000');

INSERT INTO case_library (id, diagnosis_id, query, answer, created_at, updated_at)
VALUES
    (1, 'checkout-slow', 'Why is checkout slow?', 'The pool is exhausted.',
     '2025-03-01 10:01:00.000000', '2025-03-01 10:01:00.000000'),
    (2, 'checkout-slow', 'Why is checkout slow?', 'The pool is exhausted.',
     '2025-03-01 10:02:00.000000', '2025-03-01 10:02:00.000000'),
    (3, 'vanished', NULL, NULL, '2025-02-01 00:01:00.000000', '2025-02-01 00:01:00.000000');
