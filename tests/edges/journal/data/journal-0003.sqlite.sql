BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE claim (
	node VARCHAR(128) NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	token INTEGER NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	pid_started VARCHAR(32) NOT NULL, 
	expires_at INTEGER NOT NULL, boot VARCHAR(128) DEFAULT '' NOT NULL, machine VARCHAR(64) DEFAULT '' NOT NULL, actor VARCHAR(128) DEFAULT '' NOT NULL, command VARCHAR(64) DEFAULT '' NOT NULL, since FLOAT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (node)
);
INSERT INTO "claim" VALUES('n1','',2,'vm',7330,'4537369',0,'57331dee-0b9f-478c-941f-6cdd26f979e9 pid:[4026531836]','3d1219c7c4c5404aaa1f6d2a48adfda4','alice','',1.7955370442300095558e+09);
INSERT INTO "claim" VALUES('n2','r1',2,'vm',7330,'4537369',1700000000,'57331dee-0b9f-478c-941f-6cdd26f979e9 pid:[4026531836]','3d1219c7c4c5404aaa1f6d2a48adfda4','alice','',1.7955370442300095558e+09);
CREATE TABLE event (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	stream VARCHAR(16) NOT NULL, 
	subject VARCHAR(128) NOT NULL, 
	kind VARCHAR(64) NOT NULL, 
	version INTEGER NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	actor VARCHAR(128) NOT NULL, 
	data TEXT NOT NULL, 
	evidence TEXT NOT NULL
, idempotency_key VARCHAR(64));
INSERT INTO "event" VALUES(1,'run','r1','run.started',1,'2026-01-01T00:00:01+00:00','r1','alice','{"steps":["discover"]}','[]','79b82a8a84e44378978ffc470b8e5f09-0');
INSERT INTO "event" VALUES(2,'node','n1','node.described',1,'2026-01-01T00:00:02+00:00','r1','alice','{"name":"node-n1","bmc":"192.0.2.1","rack":"A01","unit":1,"serial":"","boot_mac":null}','[]','79b82a8a84e44378978ffc470b8e5f09-1');
INSERT INTO "event" VALUES(3,'node','n2','node.described',1,'2026-01-01T00:00:03+00:00','r1','alice','{"name":"node-n2","bmc":"192.0.2.2","rack":"A01","unit":2,"serial":"","boot_mac":null}','[]','79b82a8a84e44378978ffc470b8e5f09-2');
INSERT INTO "event" VALUES(4,'node','n3','node.described',1,'2026-01-01T00:00:04+00:00','r1','alice','{"name":"node-n3","bmc":"192.0.2.3","rack":"A01","unit":3,"serial":"","boot_mac":null}','[]','79b82a8a84e44378978ffc470b8e5f09-3');
INSERT INTO "event" VALUES(5,'node','n1','step.started',1,'2026-01-01T00:00:05+00:00','r1','alice','{"step":"discover"}','[]','79b82a8a84e44378978ffc470b8e5f09-4');
INSERT INTO "event" VALUES(6,'node','n1','node.identified',1,'2026-01-01T00:00:06+00:00','r1','alice','{"inventory":{"manufacturer":"Dell Inc.","model":"PowerEdge XE9680","serial":"S1","bios_version":"","bmc_firmware":"","cpu_count":null,"memory_gib":null,"gpus":null,"hcas":null,"nics":[{"slot":"nic0","mac":"02:00:00:00:00:01","boots":true}],"drives":[{"slot":"0","model":"M.2","size_bytes":480000000000,"serial":"DISK-S1","protocol":"","healthy":null,"wwn":"","controller":""}],"psus":null,"temperatures":null,"health":"","cpus":null,"dimms":null,"fans":null,"firmware":null,"stale":"","on":null,"posted":null,"rollups":[],"aliases":[],"unread":[]},"sku":"lab","root_disk":"DISK-S1","root_rule":null}','[]','79b82a8a84e44378978ffc470b8e5f09-5');
INSERT INTO "event" VALUES(7,'node','n1','report.recorded',1,'2026-01-01T00:00:07+00:00','r1','alice','{"report":{"step":"discover","suite":"","findings":[{"check":"x","verdict":"pass","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"mend","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}}','["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"]','79b82a8a84e44378978ffc470b8e5f09-6');
INSERT INTO "event" VALUES(8,'node','n1','stage.advanced',1,'2026-01-01T00:00:08+00:00','r1','alice','{"to":"discovered","verdict":"pass"}','[]','79b82a8a84e44378978ffc470b8e5f09-7');
INSERT INTO "event" VALUES(9,'node','n1','node.host_key_pinned',1,'2026-01-01T00:00:09+00:00','r1','alice','{"public":"ssh-ed25519 AAAA"}','[]','79b82a8a84e44378978ffc470b8e5f09-8');
INSERT INTO "event" VALUES(10,'node','n1','act.intended',1,'2026-01-01T00:00:10+00:00','r1','alice','{"act":"install.start","target":"S1","reason":"","details":null}','[]','79b82a8a84e44378978ffc470b8e5f09-9');
INSERT INTO "event" VALUES(11,'node','n1','act.observed',1,'2026-01-01T00:00:11+00:00','r1','alice','{"act":"install.start","result":"done","message":"installing","component":""}','[]','79b82a8a84e44378978ffc470b8e5f09-10');
INSERT INTO "event" VALUES(12,'node','n1','node.addressed',1,'2026-01-01T00:00:12+00:00','r1','alice','{"address":"192.0.2.101"}','[]','79b82a8a84e44378978ffc470b8e5f09-11');
INSERT INTO "event" VALUES(13,'node','n1','stage.advanced',1,'2026-01-01T00:00:13+00:00','r1','alice','{"to":"installed","verdict":"pass"}','[]','79b82a8a84e44378978ffc470b8e5f09-12');
INSERT INTO "event" VALUES(14,'node','n1','stage.advanced',1,'2026-01-01T00:00:14+00:00','r1','alice','{"to":"configured","verdict":"pass"}','[]','79b82a8a84e44378978ffc470b8e5f09-13');
INSERT INTO "event" VALUES(15,'node','n1','stage.advanced',1,'2026-01-01T00:00:15+00:00','r1','alice','{"to":"cabled","verdict":"pass"}','[]','79b82a8a84e44378978ffc470b8e5f09-14');
INSERT INTO "event" VALUES(16,'node','n1','stage.advanced',1,'2026-01-01T00:00:16+00:00','r1','alice','{"to":"burned-in","verdict":"pass"}','[]','79b82a8a84e44378978ffc470b8e5f09-15');
INSERT INTO "event" VALUES(17,'node','n1','stage.advanced',1,'2026-01-01T00:00:17+00:00','r1','alice','{"to":"gold","verdict":"pass"}','[]','79b82a8a84e44378978ffc470b8e5f09-16');
INSERT INTO "event" VALUES(18,'node','n2','act.intended',1,'2026-01-01T00:00:18+00:00','r1','alice','{"act":"install.start","target":"S2","reason":"","details":null}','[]','79b82a8a84e44378978ffc470b8e5f09-17');
INSERT INTO "event" VALUES(19,'node','n2','report.recorded',1,'2026-01-01T00:00:19+00:00','r1','alice','{"report":{"step":"install","suite":"","findings":[{"check":"x","verdict":"fail","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"mend","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}}','["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"]','79b82a8a84e44378978ffc470b8e5f09-18');
INSERT INTO "event" VALUES(20,'node','n2','node.quarantined',1,'2026-01-01T00:00:20+00:00','r1','alice','{"step":"install","cause":"“no” disk","remedy":"replace it","verdict":"fail","check":"","subject":"node","serial":"","by_operator":false,"node":""}','[]','79b82a8a84e44378978ffc470b8e5f09-19');
INSERT INTO "event" VALUES(21,'node','n3','node.held',1,'2026-01-01T00:00:21+00:00','r1','alice','{"step":"install","cause":"“no” disk","remedy":"replace it","verdict":"inconclusive"}','[]','79b82a8a84e44378978ffc470b8e5f09-20');
INSERT INTO "event" VALUES(22,'node','n3','node.released',1,'2026-01-01T00:00:22+00:00','r1','alice','{"to":"seen","reason":"cable replaced"}','[]','79b82a8a84e44378978ffc470b8e5f09-21');
INSERT INTO "event" VALUES(23,'part','GPU1','act.observed',1,'2026-01-01T00:00:23+00:00','r1','alice','{"act":"log.clear","result":"done","message":"","component":""}','[]','79b82a8a84e44378978ffc470b8e5f09-22');
INSERT INTO "event" VALUES(24,'run','r1','run.finished',1,'2026-01-01T00:00:24+00:00','r1','alice','{}','[]','79b82a8a84e44378978ffc470b8e5f09-23');
CREATE TABLE evidence (
	digest VARCHAR(64) NOT NULL, 
	source TEXT NOT NULL, 
	"where" TEXT NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	origin VARCHAR(16) NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "evidence" VALUES('168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54','ibstat','node-n1','2026-01-01T00:00:00+00:00','simulated',X'789C73765450CFCDA9308D3750E76270C6C90100C0660934');
CREATE TABLE node_state (
	node VARCHAR(128) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	stage VARCHAR(16) NOT NULL, 
	last_seq INTEGER NOT NULL, 
	summary TEXT NOT NULL, 
	state TEXT NOT NULL, 
	PRIMARY KEY (node), 
	UNIQUE (name)
);
INSERT INTO "node_state" VALUES('n1','node-n1','gold',17,'{"id":"n1","name":"node-n1","stage":"gold","verdict":"pass","since":"2026-01-01T00:00:17Z","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.1","location":{"rack":"A01","unit":1},"expected_serial":null,"serial":"S1","sku":"lab","root_disk":"DISK-S1","address":"192.0.2.101","stopped_by":"","hold":null,"waivers":[],"boot_mac":null,"aliases":[]}','{"id":"n1","name":"node-n1","stage":"gold","since":"2026-01-01T00:00:17Z","verdict":"pass","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.1","location":{"rack":"A01","unit":1},"expected_serial":null,"serial":"S1","inventory":{"manufacturer":"Dell Inc.","model":"PowerEdge XE9680","serial":"S1","bios_version":"","bmc_firmware":"","cpu_count":null,"memory_gib":null,"gpus":null,"hcas":null,"nics":[{"slot":"nic0","mac":"02:00:00:00:00:01","boots":true}],"drives":[{"slot":"0","model":"M.2","size_bytes":480000000000,"serial":"DISK-S1","protocol":"","healthy":null,"wwn":"","controller":""}],"psus":null,"temperatures":null,"health":"","cpus":null,"dimms":null,"fans":null,"firmware":null,"stale":"","on":null,"posted":null,"rollups":[],"aliases":[],"unread":[]},"sku":"lab","root_disk":"DISK-S1","root_rule":null,"address":"192.0.2.101","host_key":"ssh-ed25519 AAAA","attempts":0,"intents":[{"act":"install.start","target":"S1","seq":10,"details":null,"result":"done","observed":11,"done":11}],"reports":{"discover":{"step":"discover","suite":"","findings":[{"check":"x","verdict":"pass","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"mend","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}},"reported_at":{"discover":"2026-01-01T00:00:07Z"},"events":14,"last_seq":17,"stopped_by":"","hold":null,"waivers":[],"former_serials":[],"boot_mac":null,"reinstall":"","progress_at":null,"progress":[],"revalidation":null,"admitted_at":"2026-01-01T00:00:17Z"}');
INSERT INTO "node_state" VALUES('n2','node-n2','quarantined',20,'{"id":"n2","name":"node-n2","stage":"quarantined","verdict":"fail","since":"2026-01-01T00:00:20Z","cause":"“no” disk","remedy":"replace it","stopped_at":"install","bmc":"192.0.2.2","location":{"rack":"A01","unit":2},"expected_serial":null,"serial":null,"sku":"","root_disk":null,"address":"","stopped_by":"","hold":null,"waivers":[],"boot_mac":null,"aliases":[]}','{"id":"n2","name":"node-n2","stage":"quarantined","since":"2026-01-01T00:00:20Z","verdict":"fail","cause":"“no” disk","remedy":"replace it","stopped_at":"install","bmc":"192.0.2.2","location":{"rack":"A01","unit":2},"expected_serial":null,"serial":null,"inventory":null,"sku":"","root_disk":null,"root_rule":null,"address":"","host_key":"","attempts":0,"intents":[{"act":"install.start","target":"S2","seq":18,"details":null,"result":null,"observed":0,"done":0}],"reports":{"install":{"step":"install","suite":"","findings":[{"check":"x","verdict":"fail","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"mend","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}},"reported_at":{"install":"2026-01-01T00:00:19Z"},"events":4,"last_seq":20,"stopped_by":"","hold":null,"waivers":[],"former_serials":[],"boot_mac":null,"reinstall":"","progress_at":null,"progress":[],"revalidation":null,"admitted_at":null}');
INSERT INTO "node_state" VALUES('n3','node-n3','seen',22,'{"id":"n3","name":"node-n3","stage":"seen","verdict":"inconclusive","since":"2026-01-01T00:00:22Z","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.3","location":{"rack":"A01","unit":3},"expected_serial":null,"serial":null,"sku":"","root_disk":null,"address":"","stopped_by":"","hold":null,"waivers":[],"boot_mac":null,"aliases":[]}','{"id":"n3","name":"node-n3","stage":"seen","since":"2026-01-01T00:00:22Z","verdict":"inconclusive","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.3","location":{"rack":"A01","unit":3},"expected_serial":null,"serial":null,"inventory":null,"sku":"","root_disk":null,"root_rule":null,"address":"","host_key":"","attempts":0,"intents":[],"reports":{},"reported_at":{},"events":3,"last_seq":22,"stopped_by":"","hold":null,"waivers":[],"former_serials":[],"boot_mac":null,"reinstall":"","progress_at":null,"progress":[],"revalidation":null,"admitted_at":null}');
CREATE INDEX event_by_subject ON event (stream, subject, seq);
CREATE INDEX node_state_by_stage ON node_state (stage);
CREATE UNIQUE INDEX event_by_idempotency_key ON event (idempotency_key);
CREATE INDEX event_by_kind ON event (kind, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',24);
COMMIT;
