BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0005');
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
INSERT INTO "claim" VALUES('n1','',2,'vm',6098,'8930352',0,'76ec950a-183e-4306-b867-3d21cc58b78b pid:[4026531836]','3d1219c7c4c5404aaa1f6d2a48adfda4','alice','',1.79589319117400932307e+09);
INSERT INTO "claim" VALUES('n2','r1',2,'vm',6098,'8930352',1700000000,'76ec950a-183e-4306-b867-3d21cc58b78b pid:[4026531836]','3d1219c7c4c5404aaa1f6d2a48adfda4','alice','',1.79589319117400932307e+09);
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
, idempotency_key VARCHAR(64), previous VARCHAR(64) DEFAULT '' NOT NULL, digest VARCHAR(64) DEFAULT '' NOT NULL);
INSERT INTO "event" VALUES(1,'run','r1','run.started',1,'2026-01-01T00:00:01+00:00','r1','alice','{"steps":["discover"]}','[]','52e0a666368a41299121c3be0b45e440-0','','9000a63dedfe2f4bd8b41434054f1c081c66b53d992214be634f762b8dd6b16c');
INSERT INTO "event" VALUES(2,'node','n1','node.described',1,'2026-01-01T00:00:02+00:00','r1','alice','{"name":"node-n1","bmc":"192.0.2.1","rack":"A01","unit":1,"serial":"","boot_mac":null}','[]','52e0a666368a41299121c3be0b45e440-1','','609fad97a541d1d1d2652b840a71c2c4368ba61534508f4987446b83c4112cf2');
INSERT INTO "event" VALUES(3,'node','n2','node.described',1,'2026-01-01T00:00:03+00:00','r1','alice','{"name":"node-n2","bmc":"192.0.2.2","rack":"A01","unit":2,"serial":"","boot_mac":null}','[]','52e0a666368a41299121c3be0b45e440-2','609fad97a541d1d1d2652b840a71c2c4368ba61534508f4987446b83c4112cf2','302211592755183a2feb6546f597c0390a6fb509c0f645ed912e0f9261460fc0');
INSERT INTO "event" VALUES(4,'node','n3','node.described',1,'2026-01-01T00:00:04+00:00','r1','alice','{"name":"node-n3","bmc":"192.0.2.3","rack":"A01","unit":3,"serial":"","boot_mac":null}','[]','52e0a666368a41299121c3be0b45e440-3','302211592755183a2feb6546f597c0390a6fb509c0f645ed912e0f9261460fc0','f13effbd41d6df929b1c8a618a971316430d57d37f6e5bd78b389cf55ce074b6');
INSERT INTO "event" VALUES(5,'node','n1','step.started',1,'2026-01-01T00:00:05+00:00','r1','alice','{"step":"discover"}','[]','52e0a666368a41299121c3be0b45e440-4','f13effbd41d6df929b1c8a618a971316430d57d37f6e5bd78b389cf55ce074b6','bee717e3f92aec60211370f86b5952ad96f31feff27a7e5e380bb81bbe48108c');
INSERT INTO "event" VALUES(6,'node','n1','node.identified',1,'2026-01-01T00:00:06+00:00','r1','alice','{"inventory":{"manufacturer":"Dell Inc.","model":"PowerEdge XE9680","serial":"S1","bios_version":"","bmc_firmware":"","cpu_count":null,"memory_gib":null,"gpus":null,"hcas":null,"nics":[{"slot":"nic0","mac":"02:00:00:00:00:01","boots":true,"link":null}],"drives":[{"slot":"0","model":"M.2","size_bytes":480000000000,"serial":"DISK-S1","protocol":"","healthy":null,"wwn":"","controller":""}],"psus":null,"temperatures":null,"health":"","cpus":null,"dimms":null,"fans":null,"firmware":null,"stale":"","on":null,"posted":null,"ethernet_adapters":null,"rollups":[],"aliases":[],"unread":[]},"sku":"lab","root_disk":"DISK-S1","root_rule":null}','[]','52e0a666368a41299121c3be0b45e440-5','bee717e3f92aec60211370f86b5952ad96f31feff27a7e5e380bb81bbe48108c','6600318a45672a1f3bc740798953abe5c87011aabbfade3a1e62869108214986');
INSERT INTO "event" VALUES(7,'node','n1','report.recorded',1,'2026-01-01T00:00:07+00:00','r1','alice','{"report":{"step":"discover","suite":"","findings":[{"check":"x","verdict":"pass","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"repair","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}}','["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"]','52e0a666368a41299121c3be0b45e440-6','6600318a45672a1f3bc740798953abe5c87011aabbfade3a1e62869108214986','f261c527c9231b2c182deef3e2a0359aed94cebe52462bcf6965d8ca2413521b');
INSERT INTO "event" VALUES(8,'node','n1','stage.advanced',1,'2026-01-01T00:00:08+00:00','r1','alice','{"to":"discovered","verdict":"pass"}','[]','52e0a666368a41299121c3be0b45e440-7','f261c527c9231b2c182deef3e2a0359aed94cebe52462bcf6965d8ca2413521b','108b1aa9536b415bada7f2a3823b8daf4f1beda7a6684da44a644752a01f538f');
INSERT INTO "event" VALUES(9,'node','n1','node.host_key_pinned',1,'2026-01-01T00:00:09+00:00','r1','alice','{"public":"ssh-ed25519 AAAA"}','[]','52e0a666368a41299121c3be0b45e440-8','108b1aa9536b415bada7f2a3823b8daf4f1beda7a6684da44a644752a01f538f','26d8b336af130acfb6aec02d45dd5a184e2818a729edfc2504a11d473095eadb');
INSERT INTO "event" VALUES(10,'node','n1','act.intended',1,'2026-01-01T00:00:10+00:00','r1','alice','{"act":"install.start","target":"S1","reason":"","details":null}','[]','52e0a666368a41299121c3be0b45e440-9','26d8b336af130acfb6aec02d45dd5a184e2818a729edfc2504a11d473095eadb','eedbbd28d67994095d2405cec4c9e3ab74e3ae38a9bbb397ddb8d4a85a965cdd');
INSERT INTO "event" VALUES(11,'node','n1','act.observed',1,'2026-01-01T00:00:11+00:00','r1','alice','{"act":"install.start","result":"done","message":"installing","component":""}','[]','52e0a666368a41299121c3be0b45e440-10','eedbbd28d67994095d2405cec4c9e3ab74e3ae38a9bbb397ddb8d4a85a965cdd','5cadf84a40dc7f325305a9df73cecfeeed47ab5fac6ed277bb2a975dc4627896');
INSERT INTO "event" VALUES(12,'node','n1','node.addressed',1,'2026-01-01T00:00:12+00:00','r1','alice','{"address":"192.0.2.101"}','[]','52e0a666368a41299121c3be0b45e440-11','5cadf84a40dc7f325305a9df73cecfeeed47ab5fac6ed277bb2a975dc4627896','9ddc0c937debfb1d1349e48fceeb8bb4c7e250c574f6f96a588d2e7bab1d3786');
INSERT INTO "event" VALUES(13,'node','n1','stage.advanced',1,'2026-01-01T00:00:13+00:00','r1','alice','{"to":"installed","verdict":"pass"}','[]','52e0a666368a41299121c3be0b45e440-12','9ddc0c937debfb1d1349e48fceeb8bb4c7e250c574f6f96a588d2e7bab1d3786','54f6498cac77fbcccd52b8ee2fb5f91ef8bf11313df99aeb0613936cc73ea0dd');
INSERT INTO "event" VALUES(14,'node','n1','stage.advanced',1,'2026-01-01T00:00:14+00:00','r1','alice','{"to":"configured","verdict":"pass"}','[]','52e0a666368a41299121c3be0b45e440-13','54f6498cac77fbcccd52b8ee2fb5f91ef8bf11313df99aeb0613936cc73ea0dd','86818704438c8d433a2633e33f1a7cec01473796ed52bb15b434ab39200da111');
INSERT INTO "event" VALUES(15,'node','n1','stage.advanced',1,'2026-01-01T00:00:15+00:00','r1','alice','{"to":"cabled","verdict":"pass"}','[]','52e0a666368a41299121c3be0b45e440-14','86818704438c8d433a2633e33f1a7cec01473796ed52bb15b434ab39200da111','fd07b6f21416432298cf765bb8139e464979bb0d1f150b0898f349424d763535');
INSERT INTO "event" VALUES(16,'node','n1','stage.advanced',1,'2026-01-01T00:00:16+00:00','r1','alice','{"to":"burned-in","verdict":"pass"}','[]','52e0a666368a41299121c3be0b45e440-15','fd07b6f21416432298cf765bb8139e464979bb0d1f150b0898f349424d763535','832d78f1cfa3590efb3806cc7fe9a6cd409256129dce0dcb97f613e3d232702a');
INSERT INTO "event" VALUES(17,'node','n1','stage.advanced',1,'2026-01-01T00:00:17+00:00','r1','alice','{"to":"gold","verdict":"pass"}','[]','52e0a666368a41299121c3be0b45e440-16','832d78f1cfa3590efb3806cc7fe9a6cd409256129dce0dcb97f613e3d232702a','07ea7f507481518f2b3f529273e392580b93588890a32c8574bdac6f755eb7ed');
INSERT INTO "event" VALUES(18,'node','n2','act.intended',1,'2026-01-01T00:00:18+00:00','r1','alice','{"act":"install.start","target":"S2","reason":"","details":null}','[]','52e0a666368a41299121c3be0b45e440-17','07ea7f507481518f2b3f529273e392580b93588890a32c8574bdac6f755eb7ed','bcc1d4375e584c631e9984ffe2c2d1b31a238bcd4dcf7bdc9d2f6ffc71870dbe');
INSERT INTO "event" VALUES(19,'node','n2','report.recorded',1,'2026-01-01T00:00:19+00:00','r1','alice','{"report":{"step":"install","suite":"","findings":[{"check":"x","verdict":"fail","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"repair","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}}','["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"]','52e0a666368a41299121c3be0b45e440-18','bcc1d4375e584c631e9984ffe2c2d1b31a238bcd4dcf7bdc9d2f6ffc71870dbe','5e24863a677ec00d8071a49cd01f433fefd434585cbc33e0b0b247ec3917f902');
INSERT INTO "event" VALUES(20,'node','n2','node.quarantined',1,'2026-01-01T00:00:20+00:00','r1','alice','{"step":"install","cause":"“no” disk","remedy":"replace it","verdict":"fail","check":"","subject":"node","serial":"","by_operator":false,"node":""}','[]','52e0a666368a41299121c3be0b45e440-19','5e24863a677ec00d8071a49cd01f433fefd434585cbc33e0b0b247ec3917f902','71302916e10207ef43680c9e0ea5654f145f9f81978c204d154707bef1978c4e');
INSERT INTO "event" VALUES(21,'node','n3','node.held',1,'2026-01-01T00:00:21+00:00','r1','alice','{"step":"install","cause":"“no” disk","remedy":"replace it","verdict":"inconclusive"}','[]','52e0a666368a41299121c3be0b45e440-20','71302916e10207ef43680c9e0ea5654f145f9f81978c204d154707bef1978c4e','dd220b762ecbf7accf46f1178753abacae89d15bbfe66dbfdd4d552260c5ab09');
INSERT INTO "event" VALUES(22,'node','n3','node.released',1,'2026-01-01T00:00:22+00:00','r1','alice','{"to":"seen","reason":"cable replaced","was":"quarantined"}','[]','52e0a666368a41299121c3be0b45e440-21','dd220b762ecbf7accf46f1178753abacae89d15bbfe66dbfdd4d552260c5ab09','b4a71073ba73cab5c5e10b2b0acdb69ab6f865ea903b73fa017668cf1ce50388');
INSERT INTO "event" VALUES(23,'part','GPU1','act.observed',1,'2026-01-01T00:00:23+00:00','r1','alice','{"act":"log.clear","result":"done","message":"","component":""}','[]','52e0a666368a41299121c3be0b45e440-22','','ece8bbea9dbbff19260eb353ded5a7c4d8505b1d421cfce00d90be150e705557');
INSERT INTO "event" VALUES(24,'run','r1','run.finished',1,'2026-01-01T00:00:24+00:00','r1','alice','{}','[]','52e0a666368a41299121c3be0b45e440-23','9000a63dedfe2f4bd8b41434054f1c081c66b53d992214be634f762b8dd6b16c','5717e7df33338f3d30488d7cde9f0fa3ebf5f58ba42a9c8f4d0d2fe9f8cf0cfb');
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
CREATE TABLE incident_state (
	incident VARCHAR(128) NOT NULL, 
	unfinished INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	state_digest VARCHAR(64) NOT NULL, 
	PRIMARY KEY (incident)
);
CREATE TABLE node_state (
	node VARCHAR(128) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	stage VARCHAR(16) NOT NULL, 
	last_seq INTEGER NOT NULL, 
	summary TEXT NOT NULL, 
	state TEXT NOT NULL, summary_digest VARCHAR(64) DEFAULT '' NOT NULL, state_digest VARCHAR(64) DEFAULT '' NOT NULL, 
	PRIMARY KEY (node), 
	UNIQUE (name)
);
INSERT INTO "node_state" VALUES('n1','node-n1','gold',17,'{"id":"n1","name":"node-n1","stage":"gold","verdict":"pass","since":"2026-01-01T00:00:17Z","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.1","location":{"rack":"A01","unit":1},"expected_serial":null,"serial":"S1","sku":"lab","root_disk":"DISK-S1","address":"192.0.2.101","stopped_by":"","hold":null,"waivers":[],"boot_mac":null,"aliases":[],"adopted":false}','{"id":"n1","name":"node-n1","stage":"gold","since":"2026-01-01T00:00:17Z","verdict":"pass","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.1","location":{"rack":"A01","unit":1},"expected_serial":null,"serial":"S1","inventory":{"manufacturer":"Dell Inc.","model":"PowerEdge XE9680","serial":"S1","bios_version":"","bmc_firmware":"","cpu_count":null,"memory_gib":null,"gpus":null,"hcas":null,"nics":[{"slot":"nic0","mac":"02:00:00:00:00:01","boots":true,"link":null}],"drives":[{"slot":"0","model":"M.2","size_bytes":480000000000,"serial":"DISK-S1","protocol":"","healthy":null,"wwn":"","controller":""}],"psus":null,"temperatures":null,"health":"","cpus":null,"dimms":null,"fans":null,"firmware":null,"stale":"","on":null,"posted":null,"ethernet_adapters":null,"rollups":[],"aliases":[],"unread":[]},"sku":"lab","root_disk":"DISK-S1","root_rule":null,"address":"192.0.2.101","host_key":"ssh-ed25519 AAAA","attempts":0,"intents":[{"act":"install.start","target":"S1","seq":10,"details":null,"result":"done","observed":11,"done":11}],"reports":{"discover":{"step":"discover","suite":"","findings":[{"check":"x","verdict":"pass","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"repair","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}},"reported_at":{"discover":"2026-01-01T00:00:07Z"},"events":14,"last_seq":17,"stopped_by":"","hold":null,"waivers":[],"former_serials":[],"boot_mac":null,"reinstall":"","progress_at":null,"progress":[],"revalidation":null,"admitted_at":"2026-01-01T00:00:17Z","adopted":false}','0e07e5c4c794a7ce6a3c42cacccc7c7522dbb53087fa6f75a793d8b18343a92c','648472e7c1d365f0c50cef99a712d14f45a188ed9d142e27b709160aa3b30cd9');
INSERT INTO "node_state" VALUES('n2','node-n2','quarantined',20,'{"id":"n2","name":"node-n2","stage":"quarantined","verdict":"fail","since":"2026-01-01T00:00:20Z","cause":"“no” disk","remedy":"replace it","stopped_at":"install","bmc":"192.0.2.2","location":{"rack":"A01","unit":2},"expected_serial":null,"serial":null,"sku":"","root_disk":null,"address":"","stopped_by":"","hold":null,"waivers":[],"boot_mac":null,"aliases":[],"adopted":false}','{"id":"n2","name":"node-n2","stage":"quarantined","since":"2026-01-01T00:00:20Z","verdict":"fail","cause":"“no” disk","remedy":"replace it","stopped_at":"install","bmc":"192.0.2.2","location":{"rack":"A01","unit":2},"expected_serial":null,"serial":null,"inventory":null,"sku":"","root_disk":null,"root_rule":null,"address":"","host_key":"","attempts":0,"intents":[{"act":"install.start","target":"S2","seq":18,"details":null,"result":null,"observed":0,"done":0}],"reports":{"install":{"step":"install","suite":"","findings":[{"check":"x","verdict":"fail","code":"gpu_ecc_uncorrectable","subject":"node","cause":"seen","measured":null,"expected":null,"remedy":"repair","serial":"","root":"","fault":"","deterministic":true,"limits":"","evidence":["168c92065bc5a4d6e3d900e856651eb55f1c7533d0b3e23a6189fd9f9ba6ae54"],"settled_by":"","where":""}],"origins":["simulated"]}},"reported_at":{"install":"2026-01-01T00:00:19Z"},"events":4,"last_seq":20,"stopped_by":"","hold":null,"waivers":[],"former_serials":[],"boot_mac":null,"reinstall":"","progress_at":null,"progress":[],"revalidation":null,"admitted_at":null,"adopted":false}','e1bcaca1f05ccf55c3f0744f79990fe4fd3425b494badd76badcfc10e69881a2','4d5aa132b2bd7105aa73e4ae2d1aab1f82ee34b19d6a60d855b4254632c3223e');
INSERT INTO "node_state" VALUES('n3','node-n3','seen',22,'{"id":"n3","name":"node-n3","stage":"seen","verdict":"inconclusive","since":"2026-01-01T00:00:22Z","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.3","location":{"rack":"A01","unit":3},"expected_serial":null,"serial":null,"sku":"","root_disk":null,"address":"","stopped_by":"","hold":null,"waivers":[],"boot_mac":null,"aliases":[],"adopted":false}','{"id":"n3","name":"node-n3","stage":"seen","since":"2026-01-01T00:00:22Z","verdict":"inconclusive","cause":"","remedy":"","stopped_at":null,"bmc":"192.0.2.3","location":{"rack":"A01","unit":3},"expected_serial":null,"serial":null,"inventory":null,"sku":"","root_disk":null,"root_rule":null,"address":"","host_key":"","attempts":0,"intents":[],"reports":{},"reported_at":{},"events":3,"last_seq":22,"stopped_by":"","hold":null,"waivers":[],"former_serials":[],"boot_mac":null,"reinstall":"","progress_at":null,"progress":[],"revalidation":null,"admitted_at":null,"adopted":false}','cf2ec47bb22a4cdd7b3c64e821d7b7bbac5e0033f0ea056994af7cbb9525e2fc','c085aa953847e00e01e3d9ce90d175601ca5ebfd9d109d4dab56f801a56ef334');
CREATE TABLE stream_head (
	stream VARCHAR(16) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	PRIMARY KEY (stream)
);
INSERT INTO "stream_head" VALUES('node','b4a71073ba73cab5c5e10b2b0acdb69ab6f865ea903b73fa017668cf1ce50388');
INSERT INTO "stream_head" VALUES('part','ece8bbea9dbbff19260eb353ded5a7c4d8505b1d421cfce00d90be150e705557');
INSERT INTO "stream_head" VALUES('run','5717e7df33338f3d30488d7cde9f0fa3ebf5f58ba42a9c8f4d0d2fe9f8cf0cfb');
CREATE INDEX event_by_subject ON event (stream, subject, seq);
CREATE INDEX node_state_by_stage ON node_state (stage);
CREATE UNIQUE INDEX event_by_idempotency_key ON event (idempotency_key);
CREATE INDEX event_by_kind ON event (kind, seq);
CREATE INDEX incident_state_by_unfinished ON incident_state (unfinished, last_seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',24);
COMMIT;
