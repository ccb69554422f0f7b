


SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;


CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);



CREATE TABLE public.claim (
    node character varying(128) NOT NULL,
    run character varying(64) NOT NULL,
    token integer NOT NULL,
    host character varying(255) NOT NULL,
    pid integer NOT NULL,
    pid_started character varying(32) NOT NULL,
    expires_at double precision NOT NULL,
    boot character varying(128) DEFAULT ''::character varying NOT NULL,
    machine character varying(64) DEFAULT ''::character varying NOT NULL,
    actor character varying(128) DEFAULT ''::character varying NOT NULL,
    command character varying(64) DEFAULT ''::character varying NOT NULL,
    since double precision DEFAULT '0'::double precision NOT NULL
);



CREATE TABLE public.event (
    seq integer NOT NULL,
    stream character varying(16) NOT NULL,
    subject character varying(128) NOT NULL,
    kind character varying(64) NOT NULL,
    version integer NOT NULL,
    at character varying(32) NOT NULL,
    run character varying(64) NOT NULL,
    actor character varying(128) NOT NULL,
    data text NOT NULL,
    evidence text NOT NULL,
    idempotency_key character varying(64)
);



CREATE SEQUENCE public.event_seq_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;



ALTER SEQUENCE public.event_seq_seq OWNED BY public.event.seq;



CREATE TABLE public.evidence (
    digest character varying(64) NOT NULL,
    source text NOT NULL,
    "where" text NOT NULL,
    at character varying(32) NOT NULL,
    origin character varying(16) NOT NULL,
    content bytea NOT NULL
);



CREATE TABLE public.node_state (
    node character varying(128) NOT NULL,
    name character varying(128) NOT NULL,
    stage character varying(16) NOT NULL,
    last_seq integer NOT NULL,
    summary text NOT NULL,
    state text NOT NULL
);



ALTER TABLE ONLY public.event ALTER COLUMN seq SET DEFAULT nextval('public.event_seq_seq'::regclass);



INSERT INTO public.alembic_version VALUES ('0003');



INSERT INTO public.claim VALUES ('n1', '', 2, 'vm', 7330, '4537369', 0, '57331dee-0b9f-478c-941f-6cdd26f979e9 pid:[4026531836]', '3d1219c7c4c5404aaa1f6d2a48adfda4', 'alice', '', 1795537048.801466);
INSERT INTO public.claim VALUES ('n2', 'r1', 2, 'vm', 7330, '4537369', 1700000000, '57331dee-0b9f-478c-941f-6cdd26f979e9 pid:[4026531836]', '3d1219c7c4c5404aaa1f6d2a48adfda4', 'alice', '', 1795537048.801466);



INSERT INTO public.event VALUES (1, 'run', 'r1', 'run.started', 1, '2026-01-01T00:00:01+00:00', 'r1', 'alice', '{"steps":["discover"]}', '[]', '11b2fc210aa341e098cf20edaece9f47-0');
INSERT INTO public.event VALUES (2, 'node', 'n1', 'node.described', 1, '2026-01-01T00:00:02+00:00', 'r1', 'alice', '{"name":"node-n1","bmc":"192.0.2.1","rack":"A01","unit":1,"serial":"","boot_mac":null}', '[]', '11b2fc210aa341e098cf20edaece9f47-1');
INSERT INTO public.event VALUES (3, 'node', 'n2', 'node.described', 1, '2026-01-01T00:00:03+00:00', 'r1', 'alice', '{"name":"node-n2","bmc":"192.0.2.2","rack":"A01","unit":2,"serial":"","boot_mac":null}', '[]', '11b2fc210aa341e098cf20edaece9f47-2');
INSERT INTO public.event VALUES (4, 'node', 'n3', 'node.described', 1, '2026-01-01T00:00:04+00:00', 'r1', 'alice', '{"name":"node-n3","bmc":"192.0.2.3","rack":"A01","unit":3,"serial":"","boot_mac":null}', '[]', '11b2fc210aa341e098cf20edaece9f47-3');
INSERT INTO public.event VALUES (5, 'node', 'n1', 'step.started', 1, '2026-01-01T00:00:05+00:00', 'r1', 'alice', '{"step":"discover"}', '[]', '11b2fc210aa341e098cf20edaece9f47-4');
INSERT INTO public.event VALUES (6, 'node', 'n1', 'node.identified', 1, '2026-01-01T00:00:06+00:00', 'r1', 'alice', '{"inventory":{"manufacturer":"Dell Inc.","model":"PowerEdge XE9680","serial":"S1","bios_version":"","bmc_firmware":"","cpu_count":null,"memory_gib":null,"gpus":null,"hcas":null,"nics":[{"slot":"nic0","mac":"02:00:00:00:00:01","boots":true}],"drives":[{"slot":"0","model":"M.2","size_bytes":480000000000,"serial":"DISK-S1","protocol":"","healthy":null,"wwn":"","controller":""}],"psus":null,"temperatures":null,"health":"","cpus":null,"dimms":null,"fans":null,"firmware":null,"stale":"","on":null,"posted":null,"rollups":[],"aliases":[],"unread":[]},"sku":"lab","root_disk":"DISK-S1","root_rule":null}', '[]', '11b2fc210aa341e098cf20edaece9f47-5');
INSERT INTO public.event VALUES (7, 'node', 'n1', 'report.recorded', 1, '2026-01-01T00:00:07+00:00', 'r1', 'alice', '{"report":{"step":"discover","suite":"","findings":[{"check":"x","verdict":"pass","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"mend","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}}', '["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"]', '11b2fc210aa341e098cf20edaece9f47-6');
INSERT INTO public.event VALUES (8, 'node', 'n1', 'stage.advanced', 1, '2026-01-01T00:00:08+00:00', 'r1', 'alice', '{"to":"discovered","verdict":"pass"}', '[]', '11b2fc210aa341e098cf20edaece9f47-7');
INSERT INTO public.event VALUES (9, 'node', 'n1', 'node.host_key_pinned', 1, '2026-01-01T00:00:09+00:00', 'r1', 'alice', '{"public":"ssh-ed25519 AAAA"}', '[]', '11b2fc210aa341e098cf20edaece9f47-8');
INSERT INTO public.event VALUES (10, 'node', 'n1', 'act.intended', 1, '2026-01-01T00:00:10+00:00', 'r1', 'alice', '{"act":"install.start","target":"S1","reason":"","details":null}', '[]', '11b2fc210aa341e098cf20edaece9f47-9');
INSERT INTO public.event VALUES (11, 'node', 'n1', 'act.observed', 1, '2026-01-01T00:00:11+00:00', 'r1', 'alice', '{"act":"install.start","result":"done","message":"installing","component":""}', '[]', '11b2fc210aa341e098cf20edaece9f47-10');
INSERT INTO public.event VALUES (12, 'node', 'n1', 'node.addressed', 1, '2026-01-01T00:00:12+00:00', 'r1', 'alice', '{"address":"192.0.2.101"}', '[]', '11b2fc210aa341e098cf20edaece9f47-11');
INSERT INTO public.event VALUES (13, 'node', 'n1', 'stage.advanced', 1, '2026-01-01T00:00:13+00:00', 'r1', 'alice', '{"to":"installed","verdict":"pass"}', '[]', '11b2fc210aa341e098cf20edaece9f47-12');
INSERT INTO public.event VALUES (14, 'node', 'n1', 'stage.advanced', 1, '2026-01-01T00:00:14+00:00', 'r1', 'alice', '{"to":"configured","verdict":"pass"}', '[]', '11b2fc210aa341e098cf20edaece9f47-13');
INSERT INTO public.event VALUES (15, 'node', 'n1', 'stage.advanced', 1, '2026-01-01T00:00:15+00:00', 'r1', 'alice', '{"to":"cabled","verdict":"pass"}', '[]', '11b2fc210aa341e098cf20edaece9f47-14');
INSERT INTO public.event VALUES (16, 'node', 'n1', 'stage.advanced', 1, '2026-01-01T00:00:16+00:00', 'r1', 'alice', '{"to":"burned-in","verdict":"pass"}', '[]', '11b2fc210aa341e098cf20edaece9f47-15');
INSERT INTO public.event VALUES (17, 'node', 'n1', 'stage.advanced', 1, '2026-01-01T00:00:17+00:00', 'r1', 'alice', '{"to":"gold","verdict":"pass"}', '[]', '11b2fc210aa341e098cf20edaece9f47-16');
INSERT INTO public.event VALUES (18, 'node', 'n2', 'act.intended', 1, '2026-01-01T00:00:18+00:00', 'r1', 'alice', '{"act":"install.start","target":"S2","reason":"","details":null}', '[]', '11b2fc210aa341e098cf20edaece9f47-17');
INSERT INTO public.event VALUES (19, 'node', 'n2', 'report.recorded', 1, '2026-01-01T00:00:19+00:00', 'r1', 'alice', '{"report":{"step":"install","suite":"","findings":[{"check":"x","verdict":"fail","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"mend","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}}', '["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"]', '11b2fc210aa341e098cf20edaece9f47-18');
INSERT INTO public.event VALUES (20, 'node', 'n2', 'node.quarantined', 1, '2026-01-01T00:00:20+00:00', 'r1', 'alice', '{"step":"install","cause":"“no” disk","remedy":"replace it","verdict":"fail","check":"","subject":"node","serial":"","by_operator":false,"node":""}', '[]', '11b2fc210aa341e098cf20edaece9f47-19');
INSERT INTO public.event VALUES (21, 'node', 'n3', 'node.held', 1, '2026-01-01T00:00:21+00:00', 'r1', 'alice', '{"step":"install","cause":"“no” disk","remedy":"replace it","verdict":"inconclusive"}', '[]', '11b2fc210aa341e098cf20edaece9f47-20');
INSERT INTO public.event VALUES (22, 'node', 'n3', 'node.released', 1, '2026-01-01T00:00:22+00:00', 'r1', 'alice', '{"to":"seen","reason":"cable replaced"}', '[]', '11b2fc210aa341e098cf20edaece9f47-21');
INSERT INTO public.event VALUES (23, 'part', 'GPU1', 'act.observed', 1, '2026-01-01T00:00:23+00:00', 'r1', 'alice', '{"act":"log.clear","result":"done","message":"","component":""}', '[]', '11b2fc210aa341e098cf20edaece9f47-22');
INSERT INTO public.event VALUES (24, 'run', 'r1', 'run.finished', 1, '2026-01-01T00:00:24+00:00', 'r1', 'alice', '{}', '[]', '11b2fc210aa341e098cf20edaece9f47-23');



INSERT INTO public.evidence VALUES ('168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54', 'ibstat', 'node-n1', '2026-01-01T00:00:00+00:00', 'simulated', '\x789c73765450cfcda9308d3750e76270c6c90100c0660934');



INSERT INTO public.node_state VALUES ('n1', 'node-n1', 'gold', 17, '{"id":"n1","name":"node-n1","stage":"gold","verdict":"pass","since":"2026-01-01T00:00:17Z","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.1","location":{"rack":"A01","unit":1},"expected_serial":null,"serial":"S1","sku":"lab","root_disk":"DISK-S1","address":"192.0.2.101","stopped_by":"","hold":null,"waivers":[],"boot_mac":null,"aliases":[]}', '{"id":"n1","name":"node-n1","stage":"gold","since":"2026-01-01T00:00:17Z","verdict":"pass","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.1","location":{"rack":"A01","unit":1},"expected_serial":null,"serial":"S1","inventory":{"manufacturer":"Dell Inc.","model":"PowerEdge XE9680","serial":"S1","bios_version":"","bmc_firmware":"","cpu_count":null,"memory_gib":null,"gpus":null,"hcas":null,"nics":[{"slot":"nic0","mac":"02:00:00:00:00:01","boots":true}],"drives":[{"slot":"0","model":"M.2","size_bytes":480000000000,"serial":"DISK-S1","protocol":"","healthy":null,"wwn":"","controller":""}],"psus":null,"temperatures":null,"health":"","cpus":null,"dimms":null,"fans":null,"firmware":null,"stale":"","on":null,"posted":null,"rollups":[],"aliases":[],"unread":[]},"sku":"lab","root_disk":"DISK-S1","root_rule":null,"address":"192.0.2.101","host_key":"ssh-ed25519 AAAA","attempts":0,"intents":[{"act":"install.start","target":"S1","seq":10,"details":null,"result":"done","observed":11,"done":11}],"reports":{"discover":{"step":"discover","suite":"","findings":[{"check":"x","verdict":"pass","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"mend","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}},"reported_at":{"discover":"2026-01-01T00:00:07Z"},"events":14,"last_seq":17,"stopped_by":"","hold":null,"waivers":[],"former_serials":[],"boot_mac":null,"reinstall":"","progress_at":null,"progress":[],"revalidation":null,"admitted_at":"2026-01-01T00:00:17Z"}');
INSERT INTO public.node_state VALUES ('n2', 'node-n2', 'quarantined', 20, '{"id":"n2","name":"node-n2","stage":"quarantined","verdict":"fail","since":"2026-01-01T00:00:20Z","cause":"“no” disk","remedy":"replace it","stopped_at":"install","bmc":"192.0.2.2","location":{"rack":"A01","unit":2},"expected_serial":null,"serial":null,"sku":"","root_disk":null,"address":"","stopped_by":"","hold":null,"waivers":[],"boot_mac":null,"aliases":[]}', '{"id":"n2","name":"node-n2","stage":"quarantined","since":"2026-01-01T00:00:20Z","verdict":"fail","cause":"“no” disk","remedy":"replace it","stopped_at":"install","bmc":"192.0.2.2","location":{"rack":"A01","unit":2},"expected_serial":null,"serial":null,"inventory":null,"sku":"","root_disk":null,"root_rule":null,"address":"","host_key":"","attempts":0,"intents":[{"act":"install.start","target":"S2","seq":18,"details":null,"result":null,"observed":0,"done":0}],"reports":{"install":{"step":"install","suite":"","findings":[{"check":"x","verdict":"fail","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"mend","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}},"reported_at":{"install":"2026-01-01T00:00:19Z"},"events":4,"last_seq":20,"stopped_by":"","hold":null,"waivers":[],"former_serials":[],"boot_mac":null,"reinstall":"","progress_at":null,"progress":[],"revalidation":null,"admitted_at":null}');
INSERT INTO public.node_state VALUES ('n3', 'node-n3', 'seen', 22, '{"id":"n3","name":"node-n3","stage":"seen","verdict":"inconclusive","since":"2026-01-01T00:00:22Z","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.3","location":{"rack":"A01","unit":3},"expected_serial":null,"serial":null,"sku":"","root_disk":null,"address":"","stopped_by":"","hold":null,"waivers":[],"boot_mac":null,"aliases":[]}', '{"id":"n3","name":"node-n3","stage":"seen","since":"2026-01-01T00:00:22Z","verdict":"inconclusive","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.3","location":{"rack":"A01","unit":3},"expected_serial":null,"serial":null,"inventory":null,"sku":"","root_disk":null,"root_rule":null,"address":"","host_key":"","attempts":0,"intents":[],"reports":{},"reported_at":{},"events":3,"last_seq":22,"stopped_by":"","hold":null,"waivers":[],"former_serials":[],"boot_mac":null,"reinstall":"","progress_at":null,"progress":[],"revalidation":null,"admitted_at":null}');



SELECT pg_catalog.setval('public.event_seq_seq', 24, true);



ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);



ALTER TABLE ONLY public.claim
    ADD CONSTRAINT claim_pkey PRIMARY KEY (node);



ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (seq);



ALTER TABLE ONLY public.evidence
    ADD CONSTRAINT evidence_pkey PRIMARY KEY (digest);



ALTER TABLE ONLY public.node_state
    ADD CONSTRAINT node_state_name_key UNIQUE (name);



ALTER TABLE ONLY public.node_state
    ADD CONSTRAINT node_state_pkey PRIMARY KEY (node);



CREATE UNIQUE INDEX event_by_idempotency_key ON public.event USING btree (idempotency_key);



CREATE INDEX event_by_kind ON public.event USING btree (kind, seq);



CREATE INDEX event_by_subject ON public.event USING btree (stream, subject, seq);



CREATE INDEX node_state_by_stage ON public.node_state USING btree (stage);




