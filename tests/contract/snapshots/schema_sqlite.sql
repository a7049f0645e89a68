CREATE TABLE agent_numbers (
    workspace TEXT NOT NULL,
    agent TEXT NOT NULL,
    runs INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    milliseconds FLOAT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost FLOAT NOT NULL,
    last_used DATETIME, unpriced INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT pk_agent_numbers PRIMARY KEY (workspace, agent)
);

CREATE INDEX ix_agent_numbers_agent ON agent_numbers (agent);

CREATE TABLE agents (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    description TEXT NOT NULL,
    instructions TEXT NOT NULL,
    model TEXT,
    fallbacks JSON NOT NULL,
    capabilities JSON,
    connectors JSON,
    connector_id TEXT,
    exposure TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL, settings JSON DEFAULT '{}' NOT NULL, revision INTEGER DEFAULT '1' NOT NULL,
    CONSTRAINT pk_agents PRIMARY KEY (workspace, id),
    CONSTRAINT uq_agents_workspace_owner_name UNIQUE (workspace, owner, name)
);

CREATE TABLE "allowances" (
    workspace TEXT NOT NULL,
    user TEXT NOT NULL,
    connector_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    thread TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    "key" TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_allowances PRIMARY KEY (workspace, user, connector_id, tool, thread, "key")
);

CREATE TABLE api_keys (
    id TEXT NOT NULL,
    workspace TEXT NOT NULL,
    user TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    hint TEXT NOT NULL,
    scopes JSON NOT NULL,
    capabilities JSON,
    way TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    expires_at DATETIME,
    revoked_at DATETIME,
    last_used_at DATETIME, settings JSON DEFAULT '{}' NOT NULL, revision INTEGER DEFAULT '1' NOT NULL, client JSON,
    CONSTRAINT fk_api_keys_users FOREIGN KEY(workspace, user) REFERENCES users (workspace, id) ON DELETE CASCADE,
    CONSTRAINT pk_api_keys PRIMARY KEY (id),
    CONSTRAINT uq_api_keys_hash UNIQUE (hash)
);

CREATE INDEX ix_api_keys_workspace_user ON api_keys (workspace, user);

CREATE TABLE app_files (
    process TEXT NOT NULL,
    slugs JSON NOT NULL,
    expires_at DATETIME NOT NULL,
    CONSTRAINT pk_app_files PRIMARY KEY (process)
);

CREATE TABLE approvals (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    user TEXT NOT NULL,
    thread TEXT,
    agent TEXT,
    way TEXT NOT NULL,
    connector_id TEXT NOT NULL,
    slug TEXT NOT NULL,
    tool TEXT NOT NULL,
    version INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    reason TEXT NOT NULL,
    arguments BLOB NOT NULL,
    only_once BOOLEAN NOT NULL,
    status TEXT NOT NULL,
    answer TEXT,
    answered_by TEXT,
    answered_at DATETIME,
    created_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL, used_by TEXT, "key" TEXT,
    CONSTRAINT pk_approvals PRIMARY KEY (workspace, id)
);

CREATE INDEX ix_approvals_expires_at ON approvals (expires_at);

CREATE INDEX ix_approvals_workspace_user_status ON approvals (workspace, user, status);

CREATE TABLE audit (
    workspace TEXT NOT NULL,
    number INTEGER NOT NULL,
    time DATETIME NOT NULL,
    user TEXT NOT NULL,
    agent TEXT,
    way TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    outcome TEXT NOT NULL,
    arguments_hash TEXT,
    details JSON NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    CONSTRAINT pk_audit PRIMARY KEY (workspace, number)
);

CREATE TABLE audit_heads (
    workspace TEXT NOT NULL,
    number INTEGER NOT NULL,
    hash TEXT NOT NULL,
    forgotten_number INTEGER NOT NULL,
    forgotten_hash TEXT NOT NULL,
    CONSTRAINT pk_audit_heads PRIMARY KEY (workspace)
);

CREATE TABLE authorization_flows (
    state_hash TEXT NOT NULL,
    workspace TEXT NOT NULL,
    user TEXT NOT NULL,
    connector_id TEXT NOT NULL,
    sealed BLOB NOT NULL,
    expires_at DATETIME NOT NULL,
    CONSTRAINT fk_authorization_flows_connectors FOREIGN KEY(connector_id) REFERENCES connectors (id) ON DELETE CASCADE,
    CONSTRAINT pk_authorization_flows PRIMARY KEY (state_hash)
);

CREATE INDEX ix_authorization_flows_expires_at ON authorization_flows (expires_at);

CREATE TABLE bundles (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    instructions TEXT NOT NULL,
    "view" TEXT,
    capabilities JSON,
    tools JSON NOT NULL,
    resources JSON NOT NULL,
    origin TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    revision INTEGER DEFAULT '1' NOT NULL, hooks JSON DEFAULT '[]' NOT NULL,
    CONSTRAINT pk_bundles PRIMARY KEY (workspace, owner, name)
);

CREATE TABLE calls (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    user TEXT NOT NULL,
    thread TEXT,
    agent TEXT,
    way TEXT NOT NULL,
    tool TEXT NOT NULL,
    connector_id TEXT,
    slug TEXT,
    ok BOOLEAN NOT NULL,
    code TEXT,
    message TEXT,
    duration_ms FLOAT NOT NULL,
    attempts INTEGER NOT NULL,
    started_at DATETIME NOT NULL,
    trace JSON NOT NULL,
    CONSTRAINT pk_calls PRIMARY KEY (workspace, id)
);

CREATE INDEX ix_calls_started_at ON calls (started_at);

CREATE INDEX ix_calls_workspace_user_started_at ON calls (workspace, user, started_at);

CREATE TABLE changes (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    transaction_id BIGINT NOT NULL,
    origin TEXT NOT NULL,
    kind TEXT NOT NULL,
    what TEXT NOT NULL,
    workspace TEXT NOT NULL,
    user TEXT NOT NULL,
    subject TEXT NOT NULL,
    details JSON NOT NULL,
    at DATETIME NOT NULL
);

CREATE INDEX ix_changes_at ON changes (at);

CREATE INDEX ix_changes_transaction_id ON changes (transaction_id);

CREATE TABLE client_sessions (
    id TEXT NOT NULL,
    workspace TEXT NOT NULL,
    user TEXT NOT NULL,
    caller TEXT NOT NULL,
    target TEXT NOT NULL,
    capabilities JSON NOT NULL,
    lists JSON NOT NULL,
    watched JSON NOT NULL,
    stream TEXT NOT NULL,
    used_at DATETIME NOT NULL,
    CONSTRAINT pk_client_sessions PRIMARY KEY (id)
);

CREATE INDEX ix_client_sessions_used_at ON client_sessions (used_at);

CREATE INDEX ix_client_sessions_workspace_user ON client_sessions (workspace, user);

CREATE TABLE connector_metrics (
    workspace TEXT NOT NULL,
    connector_id TEXT NOT NULL,
    numbers JSON NOT NULL,
    CONSTRAINT fk_connector_metrics_connectors FOREIGN KEY(workspace, connector_id) REFERENCES connectors (workspace, id) ON DELETE CASCADE,
    CONSTRAINT pk_connector_metrics PRIMARY KEY (workspace, connector_id)
);

CREATE TABLE "connectors" (
    id TEXT NOT NULL,
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    slug TEXT NOT NULL,
    configuration JSON NOT NULL,
    description TEXT NOT NULL,
    aliases JSON NOT NULL,
    enabled BOOLEAN NOT NULL,
    revision INTEGER NOT NULL,
    era TEXT,
    instructions TEXT,
    server JSON,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    origin TEXT NOT NULL,
    CONSTRAINT pk_connectors PRIMARY KEY (id),
    CONSTRAINT uq_connectors_workspace_id UNIQUE (workspace, id),
    CONSTRAINT uq_connectors_workspace_owner_slug UNIQUE (workspace, owner, slug)
);

CREATE TABLE dragoman_schema (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT dragoman_schema_pkc PRIMARY KEY (version_num)
);

CREATE TABLE leases (
    workspace TEXT NOT NULL,
    subject TEXT NOT NULL,
    id TEXT NOT NULL,
    expires_at DATETIME NOT NULL,
    CONSTRAINT pk_leases PRIMARY KEY (workspace, subject, id)
);

CREATE TABLE loaded_tools (
    workspace TEXT NOT NULL,
    user TEXT NOT NULL,
    thread TEXT NOT NULL,
    tool TEXT NOT NULL,
    loaded_at DATETIME NOT NULL,
    CONSTRAINT pk_loaded_tools PRIMARY KEY (workspace, user, thread, tool)
);

CREATE INDEX ix_loaded_tools_loaded_at ON loaded_tools (loaded_at);

CREATE TABLE messages (
    workspace TEXT NOT NULL,
    user TEXT NOT NULL,
    thread TEXT NOT NULL,
    number INTEGER NOT NULL,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    agent TEXT,
    run TEXT,
    details JSON NOT NULL,
    created_at DATETIME NOT NULL,
    CONSTRAINT pk_messages PRIMARY KEY (workspace, user, thread, number)
);

CREATE TABLE metric_buckets (
    workspace TEXT NOT NULL,
    span INTEGER NOT NULL,
    level INTEGER NOT NULL,
    start BIGINT NOT NULL,
    user TEXT NOT NULL,
    connector TEXT NOT NULL,
    tool TEXT NOT NULL,
    agent TEXT NOT NULL,
    client TEXT NOT NULL,
    model TEXT NOT NULL,
    calls BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    reconnects BIGINT NOT NULL,
    runs BIGINT NOT NULL,
    failed_runs BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    unpriced BIGINT NOT NULL,
    cost FLOAT NOT NULL,
    took_0 BIGINT NOT NULL,
    took_1 BIGINT NOT NULL,
    took_2 BIGINT NOT NULL,
    took_3 BIGINT NOT NULL,
    took_4 BIGINT NOT NULL,
    took_5 BIGINT NOT NULL,
    took_6 BIGINT NOT NULL,
    took_7 BIGINT NOT NULL,
    took_8 BIGINT NOT NULL,
    took_9 BIGINT NOT NULL,
    took_10 BIGINT NOT NULL,
    took_11 BIGINT NOT NULL,
    took_12 BIGINT NOT NULL,
    took_13 BIGINT NOT NULL,
    took_14 BIGINT NOT NULL,
    took_15 BIGINT NOT NULL,
    took_16 BIGINT NOT NULL,
    took_17 BIGINT NOT NULL,
    took_18 BIGINT NOT NULL,
    took_19 BIGINT NOT NULL,
    took_20 BIGINT NOT NULL,
    took_21 BIGINT NOT NULL,
    took_22 BIGINT NOT NULL,
    took_23 BIGINT NOT NULL,
    ),
    CONSTRAINT pk_metric_buckets PRIMARY KEY (workspace, span, level, start, user, connector, tool, agent, client, model)
WITHOUT ROWID;

CREATE TABLE model_providers (
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    url TEXT,
    model TEXT,
    origin TEXT NOT NULL,
    key_id TEXT,
    nonce BLOB,
    ciphertext BLOB,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    revision INTEGER DEFAULT '1' NOT NULL,
    CONSTRAINT pk_model_providers PRIMARY KEY (workspace, name)
);

CREATE TABLE oauth_clients (
    id TEXT NOT NULL,
    metadata JSON NOT NULL,
    is_used BOOLEAN NOT NULL,
    created_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    CONSTRAINT pk_oauth_clients PRIMARY KEY (id)
);

CREATE INDEX ix_oauth_clients_expires_at ON oauth_clients (expires_at);

CREATE TABLE one_time_values (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    workspace TEXT NOT NULL,
    user TEXT NOT NULL,
    sealed BLOB NOT NULL,
    expires_at DATETIME NOT NULL,
    CONSTRAINT pk_one_time_values PRIMARY KEY (id)
);

CREATE INDEX ix_one_time_values_expires_at ON one_time_values (expires_at);

CREATE INDEX ix_one_time_values_workspace_user ON one_time_values (workspace, user);

CREATE TABLE questions (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    user TEXT NOT NULL,
    thread TEXT NOT NULL,
    run TEXT NOT NULL,
    root TEXT NOT NULL,
    "key" TEXT NOT NULL,
    agent TEXT NOT NULL,
    text TEXT NOT NULL,
    fields JSON,
    status TEXT NOT NULL,
    answer JSON,
    created_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    answered_at DATETIME, connector TEXT DEFAULT '' NOT NULL, url TEXT,
    CONSTRAINT pk_questions PRIMARY KEY (workspace, id),
    CONSTRAINT uq_questions_workspace_run_key UNIQUE (workspace, run, "key")
);

CREATE INDEX ix_questions_status_expires_at ON questions (status, expires_at);

CREATE INDEX ix_questions_workspace_root ON questions (workspace, root);

CREATE INDEX ix_questions_workspace_user_status ON questions (workspace, user, status);

CREATE TABLE recipes (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    connector_id TEXT NOT NULL,
    question TEXT NOT NULL,
    text TEXT NOT NULL,
    tools JSON NOT NULL,
    run TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    revision INTEGER DEFAULT '1' NOT NULL,
    CONSTRAINT fk_recipes_connectors FOREIGN KEY(connector_id) REFERENCES connectors (id) ON DELETE CASCADE,
    CONSTRAINT pk_recipes PRIMARY KEY (workspace, id)
);

CREATE INDEX ix_recipes_workspace_owner ON recipes (workspace, owner);

CREATE TABLE results (
    workspace TEXT NOT NULL,
    handle TEXT NOT NULL,
    user TEXT NOT NULL,
    tool TEXT NOT NULL,
    content_type TEXT NOT NULL,
    body BLOB NOT NULL,
    created_at DATETIME NOT NULL,
    CONSTRAINT pk_results PRIMARY KEY (workspace, handle)
);

CREATE INDEX ix_results_created_at ON results (created_at);

CREATE TABLE rollout_samples (
    workspace TEXT NOT NULL,
    run TEXT NOT NULL,
    user TEXT NOT NULL,
    arm TEXT NOT NULL,
    ok BOOLEAN NOT NULL,
    milliseconds FLOAT NOT NULL,
    tokens BIGINT NOT NULL,
    cost FLOAT NOT NULL,
    thumb INTEGER NOT NULL,
    at DATETIME NOT NULL, unpriced INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT pk_rollout_samples PRIMARY KEY (workspace, run)
);

CREATE INDEX ix_rollout_samples_at ON rollout_samples (at);

CREATE TABLE rollout_states (
    name TEXT NOT NULL,
    state JSON NOT NULL, revision INTEGER DEFAULT '1' NOT NULL,
    CONSTRAINT pk_rollout_states PRIMARY KEY (name)
);

CREATE TABLE run_events (
    workspace TEXT NOT NULL,
    root TEXT NOT NULL,
    number INTEGER NOT NULL,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT NOT NULL,
    data JSON NOT NULL,
    time DATETIME NOT NULL,
    CONSTRAINT pk_run_events PRIMARY KEY (workspace, root, number)
);

CREATE TABLE run_steps (
    workspace TEXT NOT NULL,
    run TEXT NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    "key" TEXT NOT NULL,
    content JSON,
    time DATETIME NOT NULL,
    CONSTRAINT pk_run_steps PRIMARY KEY (workspace, run, number)
);

CREATE TABLE runs (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    user TEXT NOT NULL,
    thread TEXT NOT NULL,
    root TEXT NOT NULL,
    parent TEXT,
    parent_call TEXT,
    agent TEXT NOT NULL,
    message INTEGER,
    request TEXT NOT NULL,
    status TEXT NOT NULL,
    answer TEXT,
    error JSON,
    model TEXT,
    exposure TEXT,
    arm TEXT,
    options JSON NOT NULL,
    limits JSON NOT NULL,
    usage JSON NOT NULL,
    role TEXT NOT NULL,
    grants JSON NOT NULL,
    cancel_asked BOOLEAN NOT NULL,
    worker TEXT,
    lease_until DATETIME,
    created_at DATETIME NOT NULL,
    started_at DATETIME,
    finished_at DATETIME,
    CONSTRAINT pk_runs PRIMARY KEY (workspace, id)
);

CREATE INDEX ix_runs_costliest ON runs (workspace, coalesce(json_extract("usage", '$.cost'), 0), created_at, user);

CREATE INDEX ix_runs_finished_at ON runs (finished_at);

CREATE INDEX ix_runs_longest ON runs (workspace, coalesce((julianday(finished_at) - julianday(started_at)) * 86400, -1), created_at, user);

CREATE INDEX ix_runs_not_done ON runs (workspace, status, created_at, user) WHERE status <> 'done';

CREATE INDEX ix_runs_status_lease_until ON runs (status, lease_until);

CREATE INDEX ix_runs_workspace_created_at ON runs (workspace, created_at);

CREATE INDEX ix_runs_workspace_parent_parent_call ON runs (workspace, parent, parent_call);

CREATE INDEX ix_runs_workspace_root ON runs (workspace, root);

CREATE INDEX ix_runs_workspace_user_created_at ON runs (workspace, user, created_at);

CREATE INDEX ix_runs_workspace_user_thread_message ON runs (workspace, user, thread, message);

CREATE TABLE "secrets" (
    workspace TEXT NOT NULL,
    connector_id TEXT NOT NULL,
    user TEXT NOT NULL,
    name TEXT NOT NULL,
    key_id TEXT NOT NULL,
    nonce BLOB NOT NULL,
    ciphertext BLOB NOT NULL,
    CONSTRAINT fk_secrets_connectors FOREIGN KEY(connector_id) REFERENCES connectors (id) ON DELETE CASCADE,
    CONSTRAINT pk_secrets PRIMARY KEY (workspace, connector_id, user, name)
);

CREATE TABLE signing_keys (
    id TEXT NOT NULL,
    sealed BLOB NOT NULL,
    created_at DATETIME NOT NULL,
    CONSTRAINT pk_signing_keys PRIMARY KEY (id)
);

CREATE TABLE sqlite_sequence(name,seq);

CREATE TABLE threads (
    workspace TEXT NOT NULL,
    user TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    connectors JSON,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL, revision INTEGER DEFAULT '1' NOT NULL, pinned BOOLEAN DEFAULT 0 NOT NULL, remove_at DATETIME,
    CONSTRAINT pk_threads PRIMARY KEY (workspace, user, id)
);

CREATE INDEX ix_threads_workspace_user_updated_at ON threads (workspace, user, updated_at);

CREATE TABLE tool_versions (
    workspace TEXT NOT NULL,
    connector_id TEXT NOT NULL,
    identity TEXT NOT NULL,
    tool TEXT NOT NULL,
    version INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    definition JSON NOT NULL,
    diff TEXT NOT NULL,
    seen_at DATETIME NOT NULL,
    CONSTRAINT fk_tool_versions_tools FOREIGN KEY(workspace, connector_id, identity, tool) REFERENCES tools (workspace, connector_id, identity, name) ON DELETE CASCADE,
    CONSTRAINT pk_tool_versions PRIMARY KEY (workspace, connector_id, identity, tool, version)
);

CREATE TABLE tools (
    workspace TEXT NOT NULL,
    connector_id TEXT NOT NULL,
    identity TEXT NOT NULL,
    name TEXT NOT NULL,
    slug TEXT NOT NULL,
    definition JSON NOT NULL,
    version INTEGER NOT NULL,
    accepted_version INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    is_mcp BOOLEAN NOT NULL,
    cache_ttl FLOAT NOT NULL,
    allowed_callers JSON NOT NULL,
    required_capabilities JSON NOT NULL,
    approval TEXT,
    cost FLOAT NOT NULL,
    first_seen DATETIME NOT NULL, revision INTEGER DEFAULT '1' NOT NULL,
    CONSTRAINT fk_tools_connectors FOREIGN KEY(workspace, connector_id) REFERENCES connectors (workspace, id) ON DELETE CASCADE,
    CONSTRAINT pk_tools PRIMARY KEY (workspace, connector_id, identity, name)
);

CREATE TABLE usage (
    workspace TEXT NOT NULL,
    subject TEXT NOT NULL,
    measure TEXT NOT NULL,
    window INTEGER NOT NULL,
    amount FLOAT NOT NULL,
    CONSTRAINT pk_usage PRIMARY KEY (workspace, subject, measure, window)
);

CREATE TABLE users (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    capabilities JSON NOT NULL,
    limits JSON NOT NULL,
    preferences JSON NOT NULL,
    is_active BOOLEAN NOT NULL,
    external TEXT,
    created_at DATETIME NOT NULL, settings JSON DEFAULT '{}' NOT NULL, revision INTEGER DEFAULT '1' NOT NULL,
    CONSTRAINT fk_users_workspaces FOREIGN KEY(workspace) REFERENCES workspaces (id) ON DELETE CASCADE,
    CONSTRAINT pk_users PRIMARY KEY (workspace, id),
    CONSTRAINT uq_users_external UNIQUE (external),
    CONSTRAINT uq_users_workspace_name UNIQUE (workspace, name)
);

CREATE TABLE workspaces (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    approval TEXT NOT NULL,
    limits JSON NOT NULL,
    created_at DATETIME NOT NULL, settings JSON DEFAULT '{}' NOT NULL, revision INTEGER DEFAULT '1' NOT NULL,
    CONSTRAINT pk_workspaces PRIMARY KEY (id)
);

