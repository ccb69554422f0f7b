"""The description of the API (OpenAPI 3.1, whose schemas are JSON Schema 2020-12). A test compares it with answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from clusterctl.fleet.payloads.maintenance import PlanStage
from clusterctl_web.actions import ACTIONS, INCIDENTS, NODES, PLAN_REASON, PLANS

BASE = "/api/v1"
FIELDS = tuple({one.name: one for action in ACTIONS.values() for one in action.fields}.values())
Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": "integer"}
TIME: Schema = {"type": "string", "format": "date-time"}
TIME_OR_NULL: Schema = {"type": ["string", "null"], "format": "date-time"}
TEXTS: Schema = {"type": "array", "items": TEXT}
OPEN: Schema = {"type": "object"}


def _object(**properties: Schema) -> Schema:
    """Return the schema of an object that has all of these keys; more may come."""
    return {"type": "object", "required": sorted(properties), "properties": dict(properties)}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _named(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


SPANS = ("7d", "30d", "90d", "365d")
"""What `since` of the downtime may be; without it all runs count."""
STAGES = ("seen", "discovered", "installed", "configured", "cabled", "burned_in", "gold", "quarantined", "retired")
_NODE = {
    "name": TEXT,
    "stage": TEXT,
    "verdict": TEXT,
    "since": TIME_OR_NULL,
    "cause": TEXT,
    "remedy": TEXT,
    "serial": TEXT_OR_NULL,
    "bmc": TEXT,
    "rack": TEXT,
    "unit": {"type": ["integer", "null"]},
    "stopped_at": TEXT_OR_NULL,
    "stopped_by": TEXT_OR_NULL,
    "hold": _or_null(_object(by=TEXT, reason=TEXT, since=TIME, until=TIME_OR_NULL)),
    "waivers": _array(
        _object(check=TEXT, subject=TEXT, by=TEXT, reason=TEXT, since=TIME, until=TIME, active={"type": "boolean"})
    ),
}
_VALUE: Schema = {
    "type": ["object", "string", "null"],
    "description": "a quantity {value, unit}, a bound {low, high, unit} or a word",
}
_INCIDENT = {
    "name": TEXT,
    "state": {"enum": ["open", "resolved"]},
    "severity": TEXT,
    "about": TEXT,
    "code": TEXT,
    "place": TEXT,
    "cause": TEXT,
    "remedy": TEXT,
    "opened_at": TIME_OR_NULL,
    "updated_at": TIME_OR_NULL,
    "resolved_at": TIME_OR_NULL,
    "resolved_by": TEXT_OR_NULL,
    "still_seen": {"type": "boolean", "description": "an operator has resolved it, and its end was not seen yet"},
    "change": TEXT_OR_NULL,
    "revision": NUMBER,
    "members": _array(
        _object(
            name=TEXT,
            node=TEXT,
            serial=TEXT,
            place=TEXT,
            cause=TEXT,
            remedy=TEXT,
            since=TIME_OR_NULL,
            active={"type": "boolean"},
            evidence=TEXTS,
        )
    ),
    "ticket": _object(key=TEXT, url=TEXT, closed={"type": "boolean"}),
    "messages": OPEN,
}
_RUN = {
    "name": TEXT,
    "operation": TEXT,
    "command": TEXT,
    "request": OPEN,
    "actor": TEXT,
    "ordered": TIME,
    "state": {"enum": ["waiting", "running", "ended", "lost"]},
    "approved": TEXT,
    "earlier": TEXT,
    "process": _or_null(OPEN),
    "began": TIME_OR_NULL,
    "ended": TIME_OR_NULL,
    "exit_code": {"type": ["integer", "null"]},
    "text": TEXT,
    "cancelled_by": TEXT,
}
_PLAN = {
    "name": TEXT,
    "state": {"enum": [stage.value for stage in PlanStage]},
    "reason": TEXT,
    "by": TEXT,
    "begun": TIME,
    "moved": TIME,
    "rollback": {"type": "boolean"},
    "summary": TEXT,
    "nodes": _array(_object(name=TEXT, wave=TEXT, state=TEXT, text=TEXT, at=TIME_OR_NULL)),
    "left_alone": OPEN,
    "plan": OPEN,
}
NUMBER_OR_NULL: Schema = {"type": ["integer", "null"]}
SECONDS: Schema = {"type": "number"}
FIGURE_OR_NULL: Schema = {"type": ["number", "null"]}
FLAG: Schema = {"type": "boolean"}
_CAUSE: Schema = _object(
    rule=TEXT,
    failure=TEXT,
    layer=TEXT,
    certainty={"enum": ["proven", "likely", "unknown"]},
    persistence=TEXT,
    cause=TEXT,
    action=TEXT,
    remedy=TEXT,
    error=TEXT,
    at=TIME_OR_NULL,
    step=NUMBER_OR_NULL,
    suspects=_array(_object(host=TEXT, part=TEXT, rank=NUMBER_OR_NULL)),
    because=TEXTS,
    line=TEXT,
    place=TEXT,
)
_HIDDEN: Schema = {**FLAG, "description": "texts are left out: the job is another user's"}
_JOBS: Mapping[str, Schema] = {
    "JobRun": _object(
        name=TEXT,
        state={"enum": ["running", "completed", "stopped", "asks"]},
        reason=TEXT,
        script=TEXT,
        ordered=TIME,
        actor=TEXT,
        owner=TEXT,
        nodes=NUMBER,
        folder=TEXT,
        attempts=_array(
            _object(
                attempt=NUMBER,
                job=TEXT,
                nodes=TEXTS,
                avoided=TEXTS,
                drained=TEXTS,
                manifest=TEXT,
                state=TEXT_OR_NULL,
                failure=TEXT_OR_NULL,
                layer=TEXT_OR_NULL,
                certainty=TEXT_OR_NULL,
                cause=TEXT_OR_NULL,
                hosts=TEXTS,
                action=TEXT_OR_NULL,
                first_step=NUMBER_OR_NULL,
                last_step=NUMBER_OR_NULL,
                checkpoint=NUMBER_OR_NULL,
            )
        ),
        hidden=_HIDDEN,
    ),
    "JobFailure": _object(
        job=TEXT,
        user=TEXT,
        recorded=TIME_OR_NULL,
        failure=TEXT,
        layer=TEXT,
        certainty=TEXT,
        persistence=TEXT,
        cause=TEXT,
        hosts=TEXTS,
        ranks=_array(NUMBER),
        action=TEXT,
        hidden=_HIDDEN,
    ),
    "JobDowntime": _object(
        name=TEXT,
        nodes=NUMBER,
        gpus=NUMBER,
        elapsed=SECONDS,
        downtime=SECONDS,
        hardware=SECONDS,
        restart=SECONDS,
        wait=SECONDS,
        jobs_without_times=TEXTS,
        attempts=_array(
            _object(
                job=TEXT,
                failed=FLAG,
                hardware=FLAG,
                startup=SECONDS,
                useful=SECONDS,
                saving=SECONDS,
                lost=SECONDS,
                detection=SECONDS,
                shutdown=SECONDS,
                wait=SECONDS,
            )
        ),
    ),
    "JobWhy": _object(
        job=TEXT,
        cause=_CAUSE,
        others=_array(_CAUSE),
        consequences=OPEN,
        unmeasured=TEXTS,
        last_step=NUMBER_OR_NULL,
        hosts=NUMBER_OR_NULL,
        lines=NUMBER_OR_NULL,
        bytes_read=NUMBER_OR_NULL,
        earlier_failures=NUMBER_OR_NULL,
        recorded=FLAG,
        folder=TEXT_OR_NULL,
        unread_nodes=OPEN,
        hidden=_HIDDEN,
    ),
    "JobStacks": _object(
        groups=_array(_object(ranks=_array(NUMBER), hosts=TEXTS, kernel=TEXTS, frames=TEXTS)), unread=TEXTS
    ),
}
SCHEMAS: Mapping[str, Schema] = {
    **_JOBS,
    "Node": _object(**_NODE),
    "NodeDetails": _object(
        **_NODE, inventory={"type": ["object", "null"]}, reports=OPEN, history=_array(_named("Event"))
    ),
    "Finding": _object(
        check=TEXT,
        verdict=TEXT,
        code=TEXT,
        subject=TEXT,
        serial=TEXT_OR_NULL,
        cause=TEXT,
        measured=_VALUE,
        expected=_VALUE,
        remedy=TEXT,
        root={"type": ["string", "boolean", "null"]},
        evidence=TEXTS,
        waived=TEXT_OR_NULL,
    ),
    "Why": _object(
        **_NODE,
        findings=_array(_named("Finding")),
        repeated=TEXTS,
        bmc_password=_or_null(_object(number=NUMBER, since=TIME, owed={"type": ["boolean", "string", "null"]})),
    ),
    "Event": _object(seq=NUMBER, at=TIME, run=TEXT, actor=TEXT, kind=TEXT, data=OPEN, evidence=TEXTS),
    "Evidence": _object(
        digest=TEXT, source=TEXT, where=TEXT, at=TIME, origin={"enum": ["real", "simulated"]}, text=TEXT
    ),
    "Fault": _object(kind=TEXT, subjects=TEXTS, cause=TEXT, action=TEXT, rack=TEXT, links=NUMBER, nodes=TEXTS),
    "Links": _object(
        verdict=TEXT,
        links=NUMBER,
        proven=NUMBER,
        bad=NUMBER,
        seconds={"type": "number"},
        causes=TEXTS,
        more=NUMBER,
        reason=TEXT,
    ),
    "Incident": _object(**_INCIDENT),
    "IncidentDetails": _object(**_INCIDENT, history=_array(_named("Event"))),
    "Rma": _object(
        name=TEXT,
        part=TEXT,
        node=TEXT,
        case=TEXT,
        reason=TEXT,
        stage=TEXT,
        opened_at=TIME,
        since=TIME,
        due=TIME_OR_NULL,
        late={"type": "boolean"},
        age_days=NUMBER,
        tracking=TEXT,
        replacement=TEXT,
    ),
    "Run": _object(**_RUN),
    "RunDetails": _object(**_RUN, nodes=_array(_object(node=TEXT, text=TEXT, at=TIME)), lines=TEXTS),
    "Plan": _object(**_PLAN),
    "Preview": _object(preview=OPEN, digest=TEXT),
    "Night": _object(
        run=TEXT,
        began=TIME,
        closes=TIME,
        percent=NUMBER,
        ended=TIME_OR_NULL,
        reason=TEXT,
        tested=TEXTS,
        failed=TEXTS,
        stuck=OPEN,
        links=_or_null(_named("Links")),
    ),
    "WorkOrder": _object(
        order=NUMBER,
        rack=TEXT,
        unit={"type": ["integer", "null"]},
        part=TEXT,
        slot=TEXT_OR_NULL,
        serial=TEXT_OR_NULL,
        nodes=_array(
            _object(
                name=TEXT,
                serial=TEXT_OR_NULL,
                rack=TEXT,
                unit={"type": ["integer", "null"]},
                stage=TEXT,
                stopped_at=TEXT,
            )
        ),
        cables=TEXTS,
        findings=_array(_named("Finding")),
        remedies=TEXTS,
        notes=TEXTS,
        evidence=TEXTS,
        write_back=TEXT,
        written_back_with=OPEN,
    ),
    "Logs": _object(
        node=TEXT,
        since=TIME,
        until=TIME,
        sources=_array(
            _object(source=TEXT, read=FLAG, problem=TEXT, cut=FLAG, unreadable=NUMBER, complete=FLAG),
        ),
        entries=_array(
            {
                "type": "object",
                "required": ["at"],
                "properties": {
                    "at": TIME,
                    "line": _object(unit=TEXT, level=TEXT, text=TEXT),
                    "event": _named("Event"),
                },
                "description": "a line of the log, or an event of the journal",
            }
        ),
        events_cut=FLAG,
    ),
    "BmcLog": _object(node=TEXT, entries=_array(_object(at=TEXT, severity=TEXT, message=TEXT)), older=NUMBER),
    "Figure": _object(
        check=TEXT,
        unit=TEXT,
        value=SECONDS,
        expected=_VALUE,
        nodes=NUMBER,
        rank=NUMBER,
        median=SECONDS,
        low=SECONDS,
        high=SECONDS,
    ),
    "Part": _object(serial=TEXT, events=_array(_named("Event")), rmas=_array(_named("Rma"))),
    "TargetGroup": _object(targets=TEXTS, labels=_object(exporter=TEXT, node=TEXT, rack=TEXT, unit=TEXT, sku=TEXT)),
    "Error": _object(error=_object(kind=TEXT, message=TEXT, where=TEXT, remedy=TEXT)),
}

_ANSWERS: Mapping[str, tuple[str, Schema]] = {
    "/nodes": ("All nodes that are not retired.", _object(nodes=_array(_named("Node")))),
    "/nodes/{name}": ("One node with its parts, last reports and history.", _named("NodeDetails")),
    "/nodes/{name}/why": ("Why a node is where it is.", _named("Why")),
    "/nodes/{name}/events": ("Events of a node, the newest first.", _object(events=_array(_named("Event")))),
    "/nodes/{name}/evidence/{digest}": ("One piece of evidence of a node's reports.", _named("Evidence")),
    "/nodes/{name}/logs": ("A node's log, joined with its events; for operators.", _named("Logs")),
    "/nodes/{name}/bmc-log": ("The log of a node's BMC, the newest entry first; for operators.", _named("BmcLog")),
    "/nodes/{name}/figures": (
        "Figures of a node's last reports among those of its SKU's nodes; the worst place first.",
        _object(figures=_array(_named("Figure"))),
    ),
    "/parts/{serial}": ("What the journal knows of a part, and its returns.", _named("Part")),
    "/scrape-targets": (
        "What Prometheus scrapes, for its `http_sd_configs`: one group for each exporter and node.",
        _array(_named("TargetGroup")),
    ),
    "/fabric": (
        "Faults of the fabric, and the last judgement of its links.",
        _object(faults=_array(_named("Fault")), links=_or_null(_named("Links")), judged_at=TIME_OR_NULL),
    ),
    "/incidents": ("What is wrong, the newest first.", _object(incidents=_array(_named("Incident")))),
    "/incidents/{name}": ("One incident with its history.", _named("IncidentDetails")),
    "/rmas": ("Parts on their way to and from vendors.", _object(rmas=_array(_named("Rma")))),
    "/runs": ("Detached runs, the newest first.", _object(runs=_array(_named("Run")))),
    "/runs/{run}": ("One run, its progress by node, and the end of its log.", _named("RunDetails")),
    "/plans": ("Plans of rolling changes, the newest first.", _object(plans=_array(_named("Plan")))),
    "/plans/{name}": ("One plan, and where each node of it stands.", _named("Plan")),
    "/jobs": (
        "Supervised runs and other failed jobs, the newest first.",
        _object(runs=_array(_named("JobRun")), failures=_array(_named("JobFailure"))),
    ),
    "/jobs/{job}": (
        "One job, its run, its failure, and where the time went.",
        _object(
            job=TEXT,
            user=TEXT,
            run=_or_null(_named("JobRun")),
            failure=_or_null(_named("JobFailure")),
            downtime=_or_null(_named("JobDowntime")),
        ),
    ),
    "/jobs/{job}/events": (
        "Server-sent events of a supervised run, as it changes, until it is over: each has one such document.",
        _object(run=_named("JobRun"), step={"type": ["integer", "null"]}),
    ),
    "/jobs/{job}/why": ("Why a job failed, as far as that was collected or recorded.", _named("JobWhy")),
    "/jobs/{job}/checklist": (
        "Eight questions about a job of a supervised run, for its owner.",
        _object(answers=_array(_object(question=TEXT, answer=TEXT, good={"type": ["boolean", "null"]}))),
    ),
    "/jobs/{job}/diff": (
        "What differs between the manifests of two jobs, for their owner.",
        _object(differences=_array(_object(field=TEXT, first=TEXT, second=TEXT))),
    ),
    "/downtime": (
        "The downtime of supervised runs in seconds, and what follows from their rate of failures.",
        _object(
            runs=_array(_named("JobDowntime")),
            hardware_share_mean=FIGURE_OR_NULL,
            hardware_share_by_gpu_hours=FIGURE_OR_NULL,
            save_seconds=FIGURE_OR_NULL,
            failures=NUMBER,
            node_days=SECONDS,
            failures_per_1000_node_days=FIGURE_OR_NULL,
            node_mttf_days=FIGURE_OR_NULL,
            node_mttf_days_low=FIGURE_OR_NULL,
            node_mttf_days_high=FIGURE_OR_NULL,
            nodes=NUMBER,
            repair_days=SECONDS,
            plans=_array(
                _object(
                    rate=TEXT,
                    failures_per_1000_node_days=SECONDS,
                    hours_to_failure=SECONDS,
                    spares=NUMBER,
                    checkpoint_interval_seconds=FIGURE_OR_NULL,
                )
            ),
        ),
    ),
    "/nights": ("The last nights, the newest first.", _object(nights=_array(_named("Night")))),
    "/work-orders": (
        "What technicians have to do, in the order of a walk through the racks.",
        _object(
            site=TEXT, simulated={"type": "boolean"}, at=TIME, orders=_array(_named("WorkOrder")), held=_array(OPEN)
        ),
    ),
}
_QUERIES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "/jobs/{job}/diff": ({"name": "with", "in": "query", "required": True, "schema": TEXT},),
    "/downtime": (
        {"name": "since", "in": "query", "schema": {"enum": list(SPANS)}, "description": "without it all runs"},
    ),
    "/nodes": (
        {"name": "stage", "in": "query", "schema": {"type": "string", "enum": list(STAGES)}},
        {
            "name": "q",
            "in": "query",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            "description": "words, each in the name, place, stage, SKU, serial or cause of the node, "
            "or in slot, model or serial of one of its parts",
        },
    ),
    "/incidents": ({"name": "all", "in": "query", "schema": {"enum": ["1"]}, "description": "resolved ones, too"},),
    "/rmas": ({"name": "all", "in": "query", "schema": {"enum": ["1"]}, "description": "closed ones, too"},),
    "/nodes/{name}/logs": (
        {"name": "since", "in": "query", "schema": {"enum": ["15min", "1h", "4h", "1d", "7d"], "default": "1h"}},
        {"name": "grep", "in": "query", "schema": TEXT, "description": "only lines with this text"},
    ),
    "/nodes/{name}/events": (
        {"name": "before", "in": "query", "schema": NUMBER, "description": "only events with a smaller seq"},
        {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 1000, "default": 100}},
    ),
}

FOR_OPERATORS = frozenset({"/nodes/{name}/logs", "/nodes/{name}/bmc-log"})

_APPROVED = {"approved": {**TEXT, "description": "the digest of the preview; without it nothing is done"}}
_DONE: Schema = {"anyOf": [_named("Preview"), _object(result=OPEN), _object(run=_named("Run"))]}
_ORDERS: Mapping[str, tuple[str, Mapping[str, Schema], Schema]] = {
    "/nodes/{name}/actions/{action}": (
        "Preview an action on a node; with `approved` carry it out. The fields depend on the action.",
        {**_APPROVED, **{field.name: {**TEXT, "description": field.label} for field in FIELDS}},
        _DONE,
    ),
    "/plans/{name}/actions/{action}": (
        "Preview an action on a plan of a rolling change; with `approved` carry it out.",
        {**_APPROVED, PLAN_REASON.name: {**TEXT, "description": PLAN_REASON.label}},
        _DONE,
    ),
    "/jobs": (
        "Preview a supervised run; with `approved` order it. The user submits it: docs/how-to/own-jobs.md.",
        {**_APPROVED, "request": {**OPEN, "description": "script, folder, nodes, spares, readers, policy and more"}},
        {"anyOf": [_named("Preview"), _object(run=_named("JobRun"))]},
    ),
    "/jobs/{job}/watch": ("Have an own run watched, where no watcher follows it.", {}, _object(run=_named("JobRun"))),
    "/incidents/{name}/actions/{action}": (
        "Preview an action on an incident; with `approved` carry it out.",
        {**_APPROVED, PLAN_REASON.name: {**TEXT, "description": PLAN_REASON.label}},
        _DONE,
    ),
    "/jobs/{job}/why": (
        "Read the nodes of an own job, and attribute its failure. Takes minutes.",
        {},
        _named("JobWhy"),
    ),
    "/jobs/{job}/stacks": ("Take the stacks of an own job's ranks.", {}, _named("JobStacks")),
    "/jobs/{job}/stop": (
        "Order the end of an own supervised run, and cancel its job.",
        {},
        _object(run=_named("JobRun")),
    ),
    "/runs/{run}/cancel": ("Ask a run to stop.", {}, _object(result=OPEN)),
    "/runs/{run}/retry": ("Preview the same order again; with `approved` order it.", _APPROVED, _DONE),
}
"""What operators and admins may order, and owners of jobs: summary, fields of the request, answer."""


@cache
def document() -> Mapping[str, Any]:
    """Return the OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "clusterctl",
            "version": "1",
            "description": "What the web page shows and orders. Keys are only added within a version.",
        },
        "servers": [{"url": BASE}],
        "security": [{"bearer": []}],
        "paths": {
            path: {
                **({"get": _operation(path, *_ANSWERS[path])} if path in _ANSWERS else {}),
                **({"post": _order(path, *_ORDERS[path])} if path in _ORDERS else {}),
            }
            for path in dict.fromkeys([*_ANSWERS, *_ORDERS])
        },
        "components": {
            "schemas": dict(SCHEMAS),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "clusterctl web token add NAME"}
            },
        },
    }


def _operation(path: str, summary: str, answer: Schema) -> Mapping[str, Any]:
    names = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in names]
    words = [part.strip("{}") for part in path.split("/") if part]
    return {
        "operationId": "get_" + "_".join(words).replace("-", "_"),
        "summary": summary,
        "parameters": [*parameters, *_QUERIES.get(path, ())],
        "responses": {
            "200": {"description": summary, "content": {"application/json": {"schema": answer}}},
            "401": _error("no valid token or session"),
            "404": _error("there is no such thing"),
            **({"403": _error("the job is another user's")} if path.startswith("/jobs/") else {}),
            **({"403": _error("the role does not suffice")} if path in FOR_OPERATORS else {}),
        },
    }


def _order(path: str, summary: str, fields: Mapping[str, Schema], answer: Schema) -> Mapping[str, Any]:
    described = _operation(path, summary, answer)
    actions = next((one.actions for one in (NODES, PLANS, INCIDENTS) if path.startswith(f"{one.path}/")), {})
    names = {"action": {"type": "string", "enum": sorted(actions)}}
    parameters = [
        {**one, "schema": names.get(one["name"], one["schema"])} for one in described["parameters"] if "schema" in one
    ]
    key = {"name": "Idempotency-Key", "in": "header", "schema": TEXT, "description": "an order with it is done once"}
    body = {"type": "object", "additionalProperties": False, "properties": dict(fields)}
    answers = {
        **described["responses"],
        "202": {"description": "a detached run does it", "content": {"application/json": {"schema": answer}}},
        "400": _error("a field is wrong"),
        "403": _error("the role does not suffice"),
        "409": _error("the node has changed since the preview, or another run holds it"),
    }
    return {
        **described,
        "operationId": described["operationId"].replace("get_", "order_", 1),
        "parameters": parameters if path.startswith("/jobs/") else [*parameters, key],
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": answers,
    }


def _error(description: str) -> Mapping[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": _named("Error")}}}
