BEGIN TRANSACTION;
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
	last_used DATETIME, 
	CONSTRAINT pk_agent_numbers PRIMARY KEY (workspace, agent)
);
INSERT INTO "agent_numbers" VALUES('local','agt_assistant_local',2,0,0,2.53389799999999968359e+03,5298,4,0.013305,'2026-11-16 16:10:15.912833');
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
	updated_at DATETIME NOT NULL, 
	CONSTRAINT pk_agents PRIMARY KEY (workspace, id), 
	CONSTRAINT uq_agents_workspace_owner_name UNIQUE (workspace, owner, name)
);
INSERT INTO "agents" VALUES('local','agt_con_0cbfaf782de4ba69','','mcp_notes','connector','active','Notes','',NULL,'[]',NULL,'["notes"]','con_0cbfaf782de4ba69','auto','2026-11-16 16:10:10.540098','2026-11-16 16:10:10.688539');
INSERT INTO "agents" VALUES('local','agt_con_1c01d1e6e55fa640','','mcp_mail','connector','active','','',NULL,'[]',NULL,'["mail"]','con_1c01d1e6e55fa640','auto','2026-11-16 16:10:10.693649','2026-11-16 16:10:10.988526');
INSERT INTO "agents" VALUES('local','agt_con_45c3b2dfca271ea5','usr_00efbe0396489139','mcp_remote','connector','active','','',NULL,'[]',NULL,'["remote"]','con_45c3b2dfca271ea5','auto','2026-11-16 16:10:10.733090','2026-11-16 16:10:10.733744');
INSERT INTO "agents" VALUES('local','agt_288160d288a8016e','usr_7286659df75ab256','clerk','worker','active','','Answer briefly.',NULL,'[]',NULL,'["notes"]',NULL,'auto','2026-11-16 16:10:11.177043','2026-11-16 16:10:11.177044');
CREATE TABLE allowances (
	workspace TEXT NOT NULL, 
	user TEXT NOT NULL, 
	connector_id TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	thread TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	approval_id TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_allowances PRIMARY KEY (workspace, user, connector_id, tool, thread)
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
	last_used_at DATETIME, 
	CONSTRAINT pk_api_keys PRIMARY KEY (id), 
	CONSTRAINT fk_api_keys_users FOREIGN KEY(workspace, user) REFERENCES users (workspace, id) ON DELETE CASCADE, 
	CONSTRAINT uq_api_keys_hash UNIQUE (hash)
);
INSERT INTO "api_keys" VALUES('key_375623cf58802c47','local','usr_00efbe0396489139','of boss','7b619b027bdd5b5fdcbea17294bdb373fba2e11845bcc46fa6f4147dca5410f3','drk_aRzE','["admin","approve","call","manage","read"]',NULL,'direct','2026-11-16 16:10:10.227778',NULL,NULL,'2026-11-16 16:10:10.718201');
INSERT INTO "api_keys" VALUES('key_a86d579e187bf615','local','usr_7286659df75ab256','of ann','bb03262fe23410954985a27419c0e5b10314b556548fece8cbb2d9cd81356ddb','drk_Idc6','["approve","call","manage","read"]',NULL,'direct','2026-11-16 16:10:10.338341',NULL,NULL,'2026-11-16 16:10:10.491652');
INSERT INTO "api_keys" VALUES('key_2e49b34d90f87697','wsp_07719d404aaf924d','usr_b0430277ba519193','of eve','d681eefd5062bf08734bcccf3937d7562c3f2abed43bfa0c2af0dc3ab6b24ff7','drk_FZHi','["admin","approve","call","manage","read"]',NULL,'direct','2026-11-16 16:10:10.383698',NULL,NULL,NULL);
INSERT INTO "api_keys" VALUES('key_e83fdc6c24fce88c','local','usr_7286659df75ab256','reads','b19abce77e375dccdef57484e06044416adda9bd6fa47aafbbf13e2e8cf3e838','drk_0qfv','["read"]',NULL,'direct','2026-11-16 16:10:10.411673',NULL,NULL,NULL);
INSERT INTO "api_keys" VALUES('key_db89c433b893fcb9','local','usr_7286659df75ab256','agent','a14678ef8b0591193152ad03f09ae95ba894813c004c22829cb16033d52fcf8f','drk_A4gm','["call","read"]',NULL,'agent','2026-11-16 16:10:10.440861',NULL,NULL,'2026-11-16 16:10:16.332976');
INSERT INTO "api_keys" VALUES('key_49383c3ca2a0b8af','local','usr_7286659df75ab256','revoked','09b30619bf4ed7feaee7afb235e1129c294a87a8404162f040d1059b69bedea5','drk_Rsmu','["call","read"]',NULL,'direct','2026-11-16 16:10:10.467738',NULL,'2026-11-16 16:10:10.500534',NULL);
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
	expires_at DATETIME NOT NULL, used_by TEXT, 
	CONSTRAINT pk_approvals PRIMARY KEY (workspace, id)
);
INSERT INTO "approvals" VALUES('local','apr_e1af399e2f95fa05','usr_7286659df75ab256','thr_160915f4c08f54a1','assistant','agent','con_0cbfaf782de4ba69','notes','mcp_notes_send',1,'0bd98267ba1e39a066b1f3b02a9e7d9e9bbcecd83baddc7480bb79a2732aae70','d3f6348b159e3afaa6cb2950d344136ae185d47521ccc2d5bba4ed67eabd629a','the tool says that it can destroy something',X'7746B344DB9993DE8F49A09DB8538C3E5DB9BD7146C3F0CE885B32FF45B1BD3F763B105B8617C13808A41792A8FE5BBB59F7656E50CD57C6D999C354C35451B7D0B15CC7A0B96D00CF19DCE6D0CB0DB2B365809757256FE448F50382839D796EF73C8BF1E3E9D5F5807A74ECD6C20694314E61B848B512C163FB2FA1980875AA8CC271E861B9B25AB08888726F7B186A0C2C64170186B6C634AB6BF0031309F0FF07F5FDDF9E55246B63A524C723AB934BEFC0FA9ADA7E91A5884069F36F90974FE61BBFBBBCCF',1,'pending',NULL,NULL,NULL,'2026-11-16 16:10:16.296699','2999-01-01 00:00:00.000000',NULL);
INSERT INTO "approvals" VALUES('local','apr_25a37ae1cc567446','usr_7286659df75ab256',NULL,NULL,'agent','con_0cbfaf782de4ba69','notes','mcp_notes_send',1,'0bd98267ba1e39a066b1f3b02a9e7d9e9bbcecd83baddc7480bb79a2732aae70','c2915422df5b03de45aabfb6cae4d53eb3a0bb1cd363780ceb415d42ec722a6e','the tool says that it can destroy something',X'7746B344E0FD0D007D693639BC7461C1B89AE0D15680FCF0872FA7F2CCAD600104BEF3145D580E61839C8FE3CDD4DEAC1E0A6B5F5B0FE55DD5C6E3E0E4A9F7E13AA9BBBAB685B0E5EA88C3275F13BB2909558B1AA5372C61C4B28D5D26CB3BC16FA38A00E2ACA964A7306B767F300EC9B5FDB43B9C81E5679885A0850A0A3130DD1E060BC0AE2CC4541787B0AA90D390B3600494F1931F1F724324B9B064B3441E2CBDB71D0F9F2C1FAE014C29F85756031F337608C037D38A6CD8843EB158A6FEF6D8F8C0315457',1,'pending',NULL,NULL,NULL,'2026-11-16 16:10:16.335532','2999-01-01 00:00:00.000000',NULL);
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
INSERT INTO "audit" VALUES('local',1,'2026-11-16 16:10:10.123556','owner',NULL,'direct','workspace.added','wsp_07719d404aaf924d','ok',NULL,'{"name":"acme"}','','ed1d9754caae09e6d4b3fe1836684a47e34d1075faf6659f14d8922cf42a501c');
INSERT INTO "audit" VALUES('local',2,'2026-11-16 16:10:10.180546','owner',NULL,'direct','user.added','usr_00efbe0396489139','ok',NULL,'{"name":"boss","role":"admin"}','ed1d9754caae09e6d4b3fe1836684a47e34d1075faf6659f14d8922cf42a501c','54b38d843c0369b5f1f279b719f9debc85ec2f7685ef15af56349cfd1aa85636');
INSERT INTO "audit" VALUES('local',3,'2026-11-16 16:10:10.255743','owner',NULL,'direct','key.added','key_375623cf58802c47','ok',NULL,'{"user":"usr_00efbe0396489139","name":"of boss","scopes":["admin","approve","call","manage","read"],"way":"direct"}','54b38d843c0369b5f1f279b719f9debc85ec2f7685ef15af56349cfd1aa85636','107564ee96468287dd748250b5a8006496ac806c80864dd974214155e1c89ef7');
INSERT INTO "audit" VALUES('local',4,'2026-11-16 16:10:10.291507','owner',NULL,'direct','user.added','usr_7286659df75ab256','ok',NULL,'{"name":"ann","role":"member"}','107564ee96468287dd748250b5a8006496ac806c80864dd974214155e1c89ef7','bcbc5c772491b955edd4452f35ffb4029524d50ed5e7c3c75706bd77ee54b418');
INSERT INTO "audit" VALUES('local',5,'2026-11-16 16:10:10.347946','owner',NULL,'direct','key.added','key_a86d579e187bf615','ok',NULL,'{"user":"usr_7286659df75ab256","name":"of ann","scopes":["approve","call","manage","read"],"way":"direct"}','bcbc5c772491b955edd4452f35ffb4029524d50ed5e7c3c75706bd77ee54b418','824f3a249abcee61dd58db1a6c80d9cd29c3c06828a7a4639d62ad436e2225ee');
INSERT INTO "audit" VALUES('wsp_07719d404aaf924d',1,'2026-11-16 16:10:10.365767','owner',NULL,'direct','user.added','usr_b0430277ba519193','ok',NULL,'{"name":"eve","role":"admin","from":"local"}','','d3d88e65b4fc6e0eb9cd52fac584335f9793ec669722b4de424e84a55bd64680');
INSERT INTO "audit" VALUES('wsp_07719d404aaf924d',2,'2026-11-16 16:10:10.391480','owner',NULL,'direct','key.added','key_2e49b34d90f87697','ok',NULL,'{"user":"usr_b0430277ba519193","name":"of eve","scopes":["admin","approve","call","manage","read"],"way":"direct"}','d3d88e65b4fc6e0eb9cd52fac584335f9793ec669722b4de424e84a55bd64680','891be138b6e401e8f95556b066d43ebd312cf628d0cc62905f338825b4be4b72');
INSERT INTO "audit" VALUES('local',6,'2026-11-16 16:10:10.415586','owner',NULL,'direct','key.added','key_e83fdc6c24fce88c','ok',NULL,'{"user":"usr_7286659df75ab256","name":"reads","scopes":["read"],"way":"direct"}','824f3a249abcee61dd58db1a6c80d9cd29c3c06828a7a4639d62ad436e2225ee','cb5e6837c7d785b41467272132f4c6c7513dd6eb0fb11d9c4f65c80d5d8b7890');
INSERT INTO "audit" VALUES('local',7,'2026-11-16 16:10:10.451654','owner',NULL,'direct','key.added','key_db89c433b893fcb9','ok',NULL,'{"user":"usr_7286659df75ab256","name":"agent","scopes":["call","read"],"way":"agent"}','cb5e6837c7d785b41467272132f4c6c7513dd6eb0fb11d9c4f65c80d5d8b7890','b20897913de59593a00751a3ab3ce7ea938f169cb4c539961021370a56a1577b');
INSERT INTO "audit" VALUES('local',8,'2026-11-16 16:10:10.479709','owner',NULL,'direct','key.added','key_49383c3ca2a0b8af','ok',NULL,'{"user":"usr_7286659df75ab256","name":"revoked","scopes":["call","read"],"way":"direct"}','b20897913de59593a00751a3ab3ce7ea938f169cb4c539961021370a56a1577b','9deb6a2a6d661bfc4af8e3e4dafc91696054f368e0fa0fd39b4bcb64fabdb767');
INSERT INTO "audit" VALUES('local',9,'2026-11-16 16:10:10.503690','usr_7286659df75ab256',NULL,'direct','key.revoked','key_49383c3ca2a0b8af','ok',NULL,'{"user":"usr_7286659df75ab256"}','9deb6a2a6d661bfc4af8e3e4dafc91696054f368e0fa0fd39b4bcb64fabdb767','2b2dabdd6e9af2f952e69a3024b9581c996972982777f881c1cf49995717ded1');
INSERT INTO "audit" VALUES('local',10,'2026-11-16 16:10:10.553440','owner',NULL,'direct','connector.added','notes','ok',NULL,'{"id":"con_0cbfaf782de4ba69","tier":"workspace","origin":"operator"}','2b2dabdd6e9af2f952e69a3024b9581c996972982777f881c1cf49995717ded1','21e7fbb9f336007e0898377244ac4215af223e5b31e53faa64b19e94afc02637');
INSERT INTO "audit" VALUES('local',11,'2026-11-16 16:10:10.703724','owner',NULL,'direct','connector.added','mail','ok',NULL,'{"id":"con_1c01d1e6e55fa640","tier":"workspace","origin":"operator"}','21e7fbb9f336007e0898377244ac4215af223e5b31e53faa64b19e94afc02637','a50c2fc30ace8982a835978981394288c2f4381c51dbcfbcdb4fd960aa902c6a');
INSERT INTO "audit" VALUES('local',12,'2026-11-16 16:10:10.739493','usr_00efbe0396489139',NULL,'direct','connector.added','remote','ok',NULL,'{"id":"con_45c3b2dfca271ea5","tier":"user","origin":"people"}','a50c2fc30ace8982a835978981394288c2f4381c51dbcfbcdb4fd960aa902c6a','9c44bd14eb50f217e94a5af63c35592ae4b2ea5f63298d64931c32c82cef130a');
INSERT INTO "audit" VALUES('local',13,'2026-11-16 16:10:10.848673','usr_7286659df75ab256',NULL,'direct','credential.set','mail','ok',NULL,'{"names":["env:MAIL_TOKEN"]}','9c44bd14eb50f217e94a5af63c35592ae4b2ea5f63298d64931c32c82cef130a','2131c05f0b471c3e28fb6cd491b190d4ce033b737f0df95631f102610d0d1eb4');
INSERT INTO "audit" VALUES('local',14,'2026-11-16 16:10:11.177757','usr_7286659df75ab256',NULL,'direct','agent.created','clerk','ok',NULL,'{"connectors":["notes"],"changed":[],"status":"active"}','2131c05f0b471c3e28fb6cd491b190d4ce033b737f0df95631f102610d0d1eb4','e5afe8a9e2f92b3f88ba4bb76d98b5bc48eb04200f20dc033f7102a69ac657e7');
INSERT INTO "audit" VALUES('local',15,'2026-11-16 16:10:11.204910','usr_7286659df75ab256',NULL,'direct','thread.created','thr_0186bc89e0ab496d','ok',NULL,'{"connectors":null}','e5afe8a9e2f92b3f88ba4bb76d98b5bc48eb04200f20dc033f7102a69ac657e7','e4a7193aff18933e6e5dac2e2cf0193e41ec28dfef7be1fa4b84dd97d98e2c8d');
INSERT INTO "audit" VALUES('local',16,'2026-11-16 16:10:11.000380','usr_7286659df75ab256',NULL,'direct','call','mcp_mail_digest','ok','531ab4c40012790333b5001d0b0692832b63e570b60ed9ff5c7515986c16743d','{"call":"call_a021cec8906c0bcb3c08b6c5","connector":"mail","version":1,"thread":null,"duration_ms":0.92}','e4a7193aff18933e6e5dac2e2cf0193e41ec28dfef7be1fa4b84dd97d98e2c8d','cc793438b404d192c5e0f6be821721cd4c8cb2e559ac567f433063b02944befe');
INSERT INTO "audit" VALUES('local',17,'2026-11-16 16:10:15.926289','usr_7286659df75ab256',NULL,'direct','thread.created','thr_6579ddc578b20ea3','ok',NULL,'{"connectors":null}','cc793438b404d192c5e0f6be821721cd4c8cb2e559ac567f433063b02944befe','a0001a63a45e4a62af3e08d8258d54d5228b2cc686c636ea30106e81654a2d9e');
INSERT INTO "audit" VALUES('local',18,'2026-11-16 16:10:16.237672','usr_7286659df75ab256',NULL,'direct','thread.created','thr_160915f4c08f54a1','ok',NULL,'{"connectors":null}','a0001a63a45e4a62af3e08d8258d54d5228b2cc686c636ea30106e81654a2d9e','dc8f87113daa2dc7fbdb7d109eac691df0e836ab73d8501b45e2a78ff7b9ca7d');
INSERT INTO "audit" VALUES('local',19,'2026-11-16 16:10:16.538244','usr_7286659df75ab256',NULL,'agent','call','mcp_notes_send','approval_pending','c2915422df5b03de45aabfb6cae4d53eb3a0bb1cd363780ceb415d42ec722a6e','{"call":"call_3d729e1ada652d8e550f9a2b","connector":"notes","version":1,"thread":null,"duration_ms":205.164}','dc8f87113daa2dc7fbdb7d109eac691df0e836ab73d8501b45e2a78ff7b9ca7d','52b3ce00cf09890b70c2fc1e4c3ca0a3a89219657d59bd981192338fa84dc96d');
INSERT INTO "audit" VALUES('local',20,'2026-11-16 16:10:16.659664','usr_7286659df75ab256','assistant','agent','call','mcp_notes_send','cancelled','d3f6348b159e3afaa6cb2950d344136ae185d47521ccc2d5bba4ed67eabd629a','{"call":"call_9e98f4fa70fb4e950110c274","connector":"notes","version":1,"thread":"thr_160915f4c08f54a1","duration_ms":386.823}','52b3ce00cf09890b70c2fc1e4c3ca0a3a89219657d59bd981192338fa84dc96d','6f6e3d626d298b1a9073a4a8f6360fb31a6d4e6300dac8d8539bc52680a45ad9');
CREATE TABLE audit_heads (
	workspace TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	forgotten_number INTEGER NOT NULL, 
	forgotten_hash TEXT NOT NULL, 
	CONSTRAINT pk_audit_heads PRIMARY KEY (workspace)
);
INSERT INTO "audit_heads" VALUES('local',20,'6f6e3d626d298b1a9073a4a8f6360fb31a6d4e6300dac8d8539bc52680a45ad9',0,'');
INSERT INTO "audit_heads" VALUES('wsp_07719d404aaf924d',2,'891be138b6e401e8f95556b066d43ebd312cf628d0cc62905f338825b4be4b72',0,'');
CREATE TABLE authorization_flows (
	state_hash TEXT NOT NULL, 
	workspace TEXT NOT NULL, 
	user TEXT NOT NULL, 
	connector_id TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	expires_at DATETIME NOT NULL, 
	CONSTRAINT pk_authorization_flows PRIMARY KEY (state_hash), 
	CONSTRAINT fk_authorization_flows_connectors FOREIGN KEY(connector_id) REFERENCES connectors (id) ON DELETE CASCADE
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
INSERT INTO "calls" VALUES('local','call_a021cec8906c0bcb3c08b6c5','usr_7286659df75ab256',NULL,NULL,'direct','mcp_mail_digest','con_1c01d1e6e55fa640','mail',1,NULL,NULL,9.19504000194137915968e-01,1,'2026-11-16 16:10:10.999460','{}');
INSERT INTO "calls" VALUES('local','call_3d729e1ada652d8e550f9a2b','usr_7286659df75ab256',NULL,NULL,'agent','mcp_notes_send','con_0cbfaf782de4ba69','notes',0,'approval_pending','a person has to allow this call of mcp_notes_send first (approval apr_25a37ae1cc567446)',2.05163968000078966724e+02,1,'2026-11-16 16:10:16.333080','{}');
INSERT INTO "calls" VALUES('local','call_9e98f4fa70fb4e950110c274','usr_7286659df75ab256','thr_160915f4c08f54a1','assistant','agent','mcp_notes_send','con_0cbfaf782de4ba69','notes',0,'cancelled','the caller went away',3.86823365000054764095e+02,1,'2026-11-16 16:10:16.272840','{}');
CREATE TABLE connector_metrics (
	workspace TEXT NOT NULL, 
	connector_id TEXT NOT NULL, 
	numbers JSON NOT NULL, 
	CONSTRAINT pk_connector_metrics PRIMARY KEY (workspace, connector_id), 
	CONSTRAINT fk_connector_metrics_connectors FOREIGN KEY(workspace, connector_id) REFERENCES connectors (workspace, id) ON DELETE CASCADE
);
INSERT INTO "connector_metrics" VALUES('local','con_0cbfaf782de4ba69','{"average_ms":0.0,"buckets":{},"cached":0,"connect_last_ms":84.78208499991524,"connect_total_ms":84.78208499991524,"connects":1,"failed":0,"last_call_at":0.0,"last_error":null,"last_error_at":0.0,"reconnects":0,"rejected":2,"reused":0,"slug":"notes","succeeded":0,"total_ms":0.0,"workspace":"local"}');
INSERT INTO "connector_metrics" VALUES('local','con_1c01d1e6e55fa640','{"average_ms":0.9195040001941379,"buckets":{"13":1},"cached":0,"connect_last_ms":117.78567400006068,"connect_total_ms":117.78567400006068,"connects":1,"failed":0,"last_call_at":1794845410.99946,"last_error":null,"last_error_at":0.0,"reconnects":0,"rejected":0,"reused":1,"slug":"mail","succeeded":1,"total_ms":0.9195040001941379,"workspace":"local"}');
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
INSERT INTO "connectors" VALUES('con_0cbfaf782de4ba69','local','','notes','{"command":"python","args":["-S","-E","${OLD_HOME_SERVER}"],"env":{"OLD_HOME_JOURNAL":"${OLD_HOME_JOURNAL}"},"headers":{},"secrets":["env:NOTES_TOKEN"]}','Notes','[]',1,1,'2025',NULL,'{"name":"old-home","version":"1","capabilities":{"tools":{}}}','2026-11-16 16:10:10.512251','2026-11-16 16:10:10.512257','operator');
INSERT INTO "connectors" VALUES('con_1c01d1e6e55fa640','local','','mail','{"command":"python","args":["-S","-E","${OLD_HOME_SERVER}"],"env":{"OLD_HOME_JOURNAL":"${OLD_HOME_JOURNAL}"},"headers":{},"secrets":[],"personal":["env:MAIL_TOKEN"]}','','[]',1,1,'2025',NULL,'{"name":"old-home","version":"1","capabilities":{"tools":{}}}','2026-11-16 16:10:10.684924','2026-11-16 16:10:10.684927','operator');
INSERT INTO "connectors" VALUES('con_45c3b2dfca271ea5','local','usr_00efbe0396489139','remote','{"env":{},"url":"https://remote.example/mcp","headers":{},"auth":{"kind":"bearer"},"secrets":["auth"]}','','[]',1,1,NULL,NULL,NULL,'2026-11-16 16:10:10.718839','2026-11-16 16:10:10.718840','people');
CREATE TABLE dragoman_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT dragoman_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "dragoman_schema" VALUES('0004');
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
INSERT INTO "messages" VALUES('local','usr_7286659df75ab256','thr_0186bc89e0ab496d',1,'person','hello there',NULL,'run_dffa82ecd719d3921bf9','{}','2026-11-16 16:10:11.208228');
INSERT INTO "messages" VALUES('local','usr_7286659df75ab256','thr_0186bc89e0ab496d',2,'agent','Good day.','assistant','run_dffa82ecd719d3921bf9','{"status":"done"}','2026-11-16 16:10:15.833698');
INSERT INTO "messages" VALUES('local','usr_7286659df75ab256','thr_0186bc89e0ab496d',3,'person','hello again',NULL,'run_aa160c04de91cba7873c','{}','2026-11-16 16:10:15.857415');
INSERT INTO "messages" VALUES('local','usr_7286659df75ab256','thr_0186bc89e0ab496d',4,'agent','Good day.','assistant','run_aa160c04de91cba7873c','{"status":"done"}','2026-11-16 16:10:15.913054');
INSERT INTO "messages" VALUES('local','usr_7286659df75ab256','thr_6579ddc578b20ea3',1,'person','which colour shall it be',NULL,'run_75e2c402d1977ace1ee7','{}','2026-11-16 16:10:15.927514');
INSERT INTO "messages" VALUES('local','usr_7286659df75ab256','thr_160915f4c08f54a1',1,'person','send the note',NULL,'run_44889a96a64ed1273d12','{}','2026-11-16 16:10:16.238614');
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
	answered_at DATETIME, 
	CONSTRAINT pk_questions PRIMARY KEY (workspace, id), 
	CONSTRAINT uq_questions_workspace_run_key UNIQUE (workspace, run, "key")
);
INSERT INTO "questions" VALUES('local','qst_a489087ffa0ba3b0','usr_7286659df75ab256','thr_6579ddc578b20ea3','run_75e2c402d1977ace1ee7','run_75e2c402d1977ace1ee7','f1:call_9e315a01a35c40199450','assistant','Which colour?',NULL,'pending',NULL,'2026-11-16 16:10:16.201384','2999-01-01 00:00:00.000000',NULL);
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
	at DATETIME NOT NULL, 
	CONSTRAINT pk_rollout_samples PRIMARY KEY (workspace, run)
);
CREATE TABLE rollout_states (
	name TEXT NOT NULL, 
	state JSON NOT NULL, 
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
INSERT INTO "run_events" VALUES('local','run_dffa82ecd719d3921bf9',1,'run_dffa82ecd719d3921bf9','run.queued','assistant','{"agent":"assistant","request":"hello there"}','2026-11-16 16:10:11.208251');
INSERT INTO "run_events" VALUES('local','run_dffa82ecd719d3921bf9',2,'run_dffa82ecd719d3921bf9','run.started','assistant','{"agent":"assistant","request":"hello there"}','2026-11-16 16:10:13.352502');
INSERT INTO "run_events" VALUES('local','run_dffa82ecd719d3921bf9',3,'run_dffa82ecd719d3921bf9','text','assistant','{"delta":"Good day.","turn":1}','2026-11-16 16:10:15.625210');
INSERT INTO "run_events" VALUES('local','run_dffa82ecd719d3921bf9',4,'run_dffa82ecd719d3921bf9','message.added','assistant','{"author":"agent","agent":"assistant","text":"Good day."}','2026-11-16 16:10:15.833708');
INSERT INTO "run_events" VALUES('local','run_dffa82ecd719d3921bf9',5,'run_dffa82ecd719d3921bf9','run.finished','assistant','{"status":"done","answer":"Good day.","error":null,"model":"openai-chat:gpt-5.4","usage":{"requests":1,"calls":0,"input_tokens":2638,"output_tokens":2,"cost":0.006625,"tokens_saved":0}}','2026-11-16 16:10:15.833713');
INSERT INTO "run_events" VALUES('local','run_aa160c04de91cba7873c',1,'run_aa160c04de91cba7873c','run.queued','assistant','{"agent":"assistant","request":"hello again"}','2026-11-16 16:10:15.857435');
INSERT INTO "run_events" VALUES('local','run_aa160c04de91cba7873c',2,'run_aa160c04de91cba7873c','run.started','assistant','{"agent":"assistant","request":"hello again"}','2026-11-16 16:10:15.860003');
INSERT INTO "run_events" VALUES('local','run_aa160c04de91cba7873c',3,'run_aa160c04de91cba7873c','text','assistant','{"delta":"Good day.","turn":1}','2026-11-16 16:10:15.902967');
INSERT INTO "run_events" VALUES('local','run_aa160c04de91cba7873c',4,'run_aa160c04de91cba7873c','message.added','assistant','{"author":"agent","agent":"assistant","text":"Good day."}','2026-11-16 16:10:15.913064');
INSERT INTO "run_events" VALUES('local','run_aa160c04de91cba7873c',5,'run_aa160c04de91cba7873c','run.finished','assistant','{"status":"done","answer":"Good day.","error":null,"model":"openai-chat:gpt-5.4","usage":{"requests":1,"calls":0,"input_tokens":2660,"output_tokens":2,"cost":0.00668,"tokens_saved":0}}','2026-11-16 16:10:15.913070');
INSERT INTO "run_events" VALUES('local','run_75e2c402d1977ace1ee7',1,'run_75e2c402d1977ace1ee7','run.queued','assistant','{"agent":"assistant","request":"which colour shall it be"}','2026-11-16 16:10:15.927536');
INSERT INTO "run_events" VALUES('local','run_75e2c402d1977ace1ee7',2,'run_75e2c402d1977ace1ee7','run.started','assistant','{"agent":"assistant","request":"which colour shall it be"}','2026-11-16 16:10:15.929418');
INSERT INTO "run_events" VALUES('local','run_75e2c402d1977ace1ee7',3,'run_75e2c402d1977ace1ee7','call.started','assistant','{"call":"f1:call_9e315a01a35c40199450","tool":"ask_person","title":"ask_person","connector":null,"kind":"function","arguments":{"question":"Which colour?"}}','2026-11-16 16:10:16.201350');
INSERT INTO "run_events" VALUES('local','run_75e2c402d1977ace1ee7',4,'run_75e2c402d1977ace1ee7','question.asked','assistant','{"question":"qst_a489087ffa0ba3b0","text":"Which colour?","fields":null,"expires_at":"2026-11-17T16:10:16.201384+00:00"}','2026-11-16 16:10:16.204344');
INSERT INTO "run_events" VALUES('local','run_75e2c402d1977ace1ee7',5,'run_75e2c402d1977ace1ee7','run.waiting','assistant','{}','2026-11-16 16:10:16.204401');
INSERT INTO "run_events" VALUES('local','run_44889a96a64ed1273d12',1,'run_44889a96a64ed1273d12','run.queued','assistant','{"agent":"assistant","request":"send the note"}','2026-11-16 16:10:16.238633');
INSERT INTO "run_events" VALUES('local','run_44889a96a64ed1273d12',2,'run_44889a96a64ed1273d12','run.started','assistant','{"agent":"assistant","request":"send the note"}','2026-11-16 16:10:16.240526');
INSERT INTO "run_events" VALUES('local','run_44889a96a64ed1273d12',3,'run_44889a96a64ed1273d12','call.started','assistant','{"call":"t1:call_66f63e6cae7e4ce495a4","tool":"mcp_notes_send","title":"send","connector":"notes","kind":"tool","arguments":{"text":"from a run"}}','2026-11-16 16:10:16.272692');
INSERT INTO "run_events" VALUES('local','run_44889a96a64ed1273d12',4,'run_44889a96a64ed1273d12','approval.requested','assistant','{"approval":"apr_e1af399e2f95fa05","call":"t1:call_66f63e6cae7e4ce495a4"}','2026-11-16 16:10:16.300381');
INSERT INTO "run_events" VALUES('local','run_44889a96a64ed1273d12',5,'run_44889a96a64ed1273d12','run.waiting','assistant','{}','2026-11-16 16:10:16.300444');
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
INSERT INTO "run_steps" VALUES('local','run_dffa82ecd719d3921bf9',1,'offered','','["mcp_mail_digest","mcp_mail_send","mcp_notes_digest","mcp_notes_send","run_code","ask_person","query_mcp_connector","ask_agent","list_agents","create_agent","start_agent","stop_agent","delete_agent","assign_connector","unassign_connector","list_connectors","list_tools","add_connector","remove_connector"]','2026-11-16 16:10:15.585670');
INSERT INTO "run_steps" VALUES('local','run_dffa82ecd719d3921bf9',2,'messages','1','[{"parts":[{"content":"hello there","timestamp":"2026-11-16T16:10:15.540377Z","part_kind":"user-prompt"}],"timestamp":"2026-11-16T16:10:15.583834Z","instructions":null,"kind":"request","run_id":"01a1e51f-9859-734a-a662-0809f1386c50","conversation_id":"01a1e51f-9859-734a-a662-080a0329f405","metadata":null,"state":"complete"},{"parts":[{"content":"Good day.","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}],"usage":{"input_tokens":2638,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":2,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":"0.006625"},"model_name":"gpt-5.4","model_id":"openai:gpt-5.4","timestamp":"2026-11-16T16:10:15.624537Z","kind":"response","provider_name":"openai","provider_url":"http://127.0.0.1:33827/v1/","canonical_system":"openai","provider_details":{"timestamp":"2023-11-14T22:13:20Z","finish_reason":"stop"},"provider_response_id":"chatcmpl-eae4397966c0497ebef7","finish_reason":"stop","run_id":"01a1e51f-9859-734a-a662-0809f1386c50","conversation_id":"01a1e51f-9859-734a-a662-080a0329f405","metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}]','2026-11-16 16:10:15.818827');
INSERT INTO "run_steps" VALUES('local','run_aa160c04de91cba7873c',1,'offered','','["mcp_mail_digest","mcp_mail_send","mcp_notes_digest","mcp_notes_send","run_code","ask_person","query_mcp_connector","ask_agent","list_agents","create_agent","start_agent","stop_agent","delete_agent","assign_connector","unassign_connector","list_connectors","list_tools","add_connector","remove_connector"]','2026-11-16 16:10:15.873062');
INSERT INTO "run_steps" VALUES('local','run_aa160c04de91cba7873c',2,'messages','1','[{"parts":[{"content":"hello again","timestamp":"2026-11-16T16:10:15.871648Z","part_kind":"user-prompt"}],"timestamp":"2026-11-16T16:10:15.872074Z","instructions":null,"kind":"request","run_id":"01a1e51f-99bd-77d2-9bdd-47ff19f7118c","conversation_id":"01a1e51f-9859-734a-a662-080a0329f405","metadata":null,"state":"complete"},{"parts":[{"content":"Good day.","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}],"usage":{"input_tokens":2660,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":2,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":"0.00668"},"model_name":"gpt-5.4","model_id":"openai:gpt-5.4","timestamp":"2026-11-16T16:10:15.901969Z","kind":"response","provider_name":"openai","provider_url":"http://127.0.0.1:33827/v1/","canonical_system":"openai","provider_details":{"timestamp":"2023-11-14T22:13:20Z","finish_reason":"stop"},"provider_response_id":"chatcmpl-8edd681e66e34f71962b","finish_reason":"stop","run_id":"01a1e51f-99bd-77d2-9bdd-47ff19f7118c","conversation_id":"01a1e51f-9859-734a-a662-080a0329f405","metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}]','2026-11-16 16:10:15.906427');
INSERT INTO "run_steps" VALUES('local','run_75e2c402d1977ace1ee7',1,'offered','','["mcp_mail_digest","mcp_mail_send","mcp_notes_digest","mcp_notes_send","run_code","ask_person","query_mcp_connector","ask_agent","list_agents","create_agent","start_agent","stop_agent","delete_agent","assign_connector","unassign_connector","list_connectors","list_tools","add_connector","remove_connector"]','2026-11-16 16:10:16.160859');
INSERT INTO "run_steps" VALUES('local','run_75e2c402d1977ace1ee7',2,'messages','1','[{"parts":[{"content":"which colour shall it be","timestamp":"2026-11-16T16:10:15.935513Z","part_kind":"user-prompt"}],"timestamp":"2026-11-16T16:10:15.935737Z","instructions":null,"kind":"request","run_id":"01a1e51f-99fd-71b9-a13a-b7d3839bd368","conversation_id":"01a1e51f-99fd-71b9-a13a-b7d4b983e533","metadata":null,"state":"complete"},{"parts":[{"tool_name":"ask_person","args":"{\"question\": \"Which colour?\"}","tool_call_id":"call_9e315a01a35c40199450","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":2641,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":7,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":"0.0067075"},"model_name":"gpt-5.4","model_id":"openai:gpt-5.4","timestamp":"2026-11-16T16:10:16.188632Z","kind":"response","provider_name":"openai","provider_url":"http://127.0.0.1:33827/v1/","canonical_system":"openai","provider_details":{"timestamp":"2023-11-14T22:13:20Z","finish_reason":"tool_calls"},"provider_response_id":"chatcmpl-d3b5ad896076487baeb3","finish_reason":"tool_call","run_id":"01a1e51f-99fd-71b9-a13a-b7d3839bd368","conversation_id":"01a1e51f-99fd-71b9-a13a-b7d4b983e533","metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}]','2026-11-16 16:10:16.200310');
INSERT INTO "run_steps" VALUES('local','run_44889a96a64ed1273d12',1,'offered','','["mcp_mail_digest","mcp_mail_send","mcp_notes_digest","mcp_notes_send","run_code","ask_person","query_mcp_connector","ask_agent","list_agents","create_agent","start_agent","stop_agent","delete_agent","assign_connector","unassign_connector","list_connectors","list_tools","add_connector","remove_connector"]','2026-11-16 16:10:16.245952');
INSERT INTO "run_steps" VALUES('local','run_44889a96a64ed1273d12',2,'messages','1','[{"parts":[{"content":"send the note","timestamp":"2026-11-16T16:10:16.245206Z","part_kind":"user-prompt"}],"timestamp":"2026-11-16T16:10:16.245393Z","instructions":null,"kind":"request","run_id":"01a1e51f-9b32-758d-a2b2-0240bc1f69f6","conversation_id":"01a1e51f-9b32-758d-a2b2-0241502681fe","metadata":null,"state":"complete"},{"parts":[{"tool_name":"mcp_notes_send","args":"{\"text\": \"from a run\"}","tool_call_id":"call_66f63e6cae7e4ce495a4","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":2638,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":5,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":"0.006670"},"model_name":"gpt-5.4","model_id":"openai:gpt-5.4","timestamp":"2026-11-16T16:10:16.259766Z","kind":"response","provider_name":"openai","provider_url":"http://127.0.0.1:33827/v1/","canonical_system":"openai","provider_details":{"timestamp":"2023-11-14T22:13:20Z","finish_reason":"tool_calls"},"provider_response_id":"chatcmpl-1617f4668cef445888f5","finish_reason":"tool_call","run_id":"01a1e51f-9b32-758d-a2b2-0240bc1f69f6","conversation_id":"01a1e51f-9b32-758d-a2b2-0241502681fe","metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}]','2026-11-16 16:10:16.263131');
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
INSERT INTO "runs" VALUES('local','run_dffa82ecd719d3921bf9','usr_7286659df75ab256','thr_0186bc89e0ab496d','run_dffa82ecd719d3921bf9',NULL,NULL,'assistant',1,'hello there','done','Good day.',NULL,'openai-chat:gpt-5.4','direct',NULL,'{}','{"requests":50,"calls":100,"tokens":1000000,"cost":null,"seconds":900.0}','{"requests":1,"calls":0,"input_tokens":2638,"output_tokens":2,"cost":0.006625,"tokens_saved":0}','member','[["mcp_integration"]]',0,'vm:26539:149458:9889e671','2026-11-16 16:10:43.319782','2026-11-16 16:10:11.208209','2026-11-16 16:10:13.352430','2026-11-16 16:10:15.833462');
INSERT INTO "runs" VALUES('local','run_aa160c04de91cba7873c','usr_7286659df75ab256','thr_0186bc89e0ab496d','run_aa160c04de91cba7873c',NULL,NULL,'assistant',3,'hello again','done','Good day.',NULL,'openai-chat:gpt-5.4','direct',NULL,'{}','{"requests":50,"calls":100,"tokens":1000000,"cost":null,"seconds":900.0}','{"requests":1,"calls":0,"input_tokens":2660,"output_tokens":2,"cost":0.00668,"tokens_saved":0}','member','[["mcp_integration"]]',0,'vm:26539:149458:9889e671','2026-11-16 16:10:45.857447','2026-11-16 16:10:15.857404','2026-11-16 16:10:15.859967','2026-11-16 16:10:15.912833');
INSERT INTO "runs" VALUES('local','run_75e2c402d1977ace1ee7','usr_7286659df75ab256','thr_6579ddc578b20ea3','run_75e2c402d1977ace1ee7',NULL,NULL,'assistant',1,'which colour shall it be','waiting',NULL,NULL,'openai-chat:gpt-5.4','direct',NULL,'{}','{"requests":50,"calls":100,"tokens":1000000,"cost":null,"seconds":900.0}','{"requests":0,"calls":0,"input_tokens":0,"output_tokens":0,"cost":0.0,"tokens_saved":0}','member','[["mcp_integration"]]',0,NULL,NULL,'2026-11-16 16:10:15.927498','2026-11-16 16:10:15.929386',NULL);
INSERT INTO "runs" VALUES('local','run_44889a96a64ed1273d12','usr_7286659df75ab256','thr_160915f4c08f54a1','run_44889a96a64ed1273d12',NULL,NULL,'assistant',1,'send the note','waiting',NULL,NULL,'openai-chat:gpt-5.4','direct',NULL,'{}','{"requests":50,"calls":100,"tokens":1000000,"cost":null,"seconds":900.0}','{"requests":0,"calls":0,"input_tokens":0,"output_tokens":0,"cost":0.0,"tokens_saved":0}','member','[["mcp_integration"]]',0,NULL,NULL,'2026-11-16 16:10:16.238600','2026-11-16 16:10:16.240491',NULL);
CREATE TABLE "secrets" (
	workspace TEXT NOT NULL, 
	connector_id TEXT NOT NULL, 
	user TEXT NOT NULL, 
	name TEXT NOT NULL, 
	key_id TEXT NOT NULL, 
	nonce BLOB NOT NULL, 
	ciphertext BLOB NOT NULL, 
	CONSTRAINT pk_secrets PRIMARY KEY (workspace, connector_id, user, name), 
	CONSTRAINT fk_secrets_connectors FOREIGN KEY(connector_id) REFERENCES connectors (id) ON DELETE CASCADE
);
INSERT INTO "secrets" VALUES('local','con_0cbfaf782de4ba69','','env:NOTES_TOKEN','7746b344',X'8E9133F85FFE9C4D954745E4',X'8F03007B7D67F89878847D754B5F1951B5E90FBE9EB5E51623F0587BC4');
INSERT INTO "secrets" VALUES('local','con_45c3b2dfca271ea5','','auth','7746b344',X'4A4E89126A190D3E18285C4D',X'9618039AA53417E0E85FA83B6C06BB2BA4C6757A5E7C86B8154527F0CA3D');
INSERT INTO "secrets" VALUES('local','con_1c01d1e6e55fa640','usr_7286659df75ab256','env:MAIL_TOKEN','7746b344',X'58A184A8F0BFE3B7FE2ECC87',X'72DBC094AA0EC76C7993E47089265E3806F13604C5938A1B071E03B5A585B1FE1E');
CREATE TABLE threads (
	workspace TEXT NOT NULL, 
	user TEXT NOT NULL, 
	id TEXT NOT NULL, 
	title TEXT NOT NULL, 
	connectors JSON, 
	created_at DATETIME NOT NULL, 
	updated_at DATETIME NOT NULL, 
	CONSTRAINT pk_threads PRIMARY KEY (workspace, user, id)
);
INSERT INTO "threads" VALUES('local','usr_7286659df75ab256','thr_0186bc89e0ab496d','hello there',NULL,'2026-11-16 16:10:11.194733','2026-11-16 16:10:11.194734');
INSERT INTO "threads" VALUES('local','usr_7286659df75ab256','thr_6579ddc578b20ea3','which colour shall it be',NULL,'2026-11-16 16:10:15.918928','2026-11-16 16:10:15.918929');
INSERT INTO "threads" VALUES('local','usr_7286659df75ab256','thr_160915f4c08f54a1','send the note',NULL,'2026-11-16 16:10:16.236983','2026-11-16 16:10:16.236983');
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
	CONSTRAINT pk_tool_versions PRIMARY KEY (workspace, connector_id, identity, tool, version), 
	CONSTRAINT fk_tool_versions_tools FOREIGN KEY(workspace, connector_id, identity, tool) REFERENCES tools (workspace, connector_id, identity, name) ON DELETE CASCADE
);
INSERT INTO "tool_versions" VALUES('local','con_0cbfaf782de4ba69','','mcp_notes_send',1,'0bd98267ba1e39a066b1f3b02a9e7d9e9bbcecd83baddc7480bb79a2732aae70','{"original_name":"send","title":null,"description":"Sends a note.","input_schema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"output_schema":null,"annotations":{"read_only":false,"destructive":true,"idempotent":null,"open_world":null},"meta":null}','','2026-11-16 16:10:10.647793');
INSERT INTO "tool_versions" VALUES('local','con_0cbfaf782de4ba69','','mcp_notes_digest',1,'295ff0374f0efdb35d267d21682449e4c96e114cc339f1ef46e44eef39e03941','{"original_name":"digest","title":null,"description":"The SHA-256 of one of its environment variables.","input_schema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"output_schema":null,"annotations":{"read_only":true,"destructive":null,"idempotent":null,"open_world":null},"meta":null}','','2026-11-16 16:10:10.647835');
INSERT INTO "tool_versions" VALUES('local','con_1c01d1e6e55fa640','user:local:usr_7286659df75ab256','mcp_mail_send',1,'0bd98267ba1e39a066b1f3b02a9e7d9e9bbcecd83baddc7480bb79a2732aae70','{"original_name":"send","title":null,"description":"Sends a note.","input_schema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"output_schema":null,"annotations":{"read_only":false,"destructive":true,"idempotent":null,"open_world":null},"meta":null}','','2026-11-16 16:10:10.968978');
INSERT INTO "tool_versions" VALUES('local','con_1c01d1e6e55fa640','user:local:usr_7286659df75ab256','mcp_mail_digest',1,'295ff0374f0efdb35d267d21682449e4c96e114cc339f1ef46e44eef39e03941','{"original_name":"digest","title":null,"description":"The SHA-256 of one of its environment variables.","input_schema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"output_schema":null,"annotations":{"read_only":true,"destructive":null,"idempotent":null,"open_world":null},"meta":null}','','2026-11-16 16:10:10.969020');
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
	first_seen DATETIME NOT NULL, 
	CONSTRAINT pk_tools PRIMARY KEY (workspace, connector_id, identity, name), 
	CONSTRAINT fk_tools_connectors FOREIGN KEY(workspace, connector_id) REFERENCES connectors (workspace, id) ON DELETE CASCADE
);
INSERT INTO "tools" VALUES('local','con_0cbfaf782de4ba69','','mcp_notes_send','notes','{"original_name":"send","title":null,"description":"Sends a note.","input_schema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"output_schema":null,"annotations":{"read_only":false,"destructive":true,"idempotent":null,"open_world":null},"meta":null}',1,1,'0bd98267ba1e39a066b1f3b02a9e7d9e9bbcecd83baddc7480bb79a2732aae70',1,1,0.0,'["agent","direct","mcp"]','[]',NULL,0.0,'2026-11-16 16:10:10.647786');
INSERT INTO "tools" VALUES('local','con_0cbfaf782de4ba69','','mcp_notes_digest','notes','{"original_name":"digest","title":null,"description":"The SHA-256 of one of its environment variables.","input_schema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"output_schema":null,"annotations":{"read_only":true,"destructive":null,"idempotent":null,"open_world":null},"meta":null}',1,1,'295ff0374f0efdb35d267d21682449e4c96e114cc339f1ef46e44eef39e03941',1,1,0.0,'["agent","direct","mcp"]','[]',NULL,0.0,'2026-11-16 16:10:10.647833');
INSERT INTO "tools" VALUES('local','con_1c01d1e6e55fa640','user:local:usr_7286659df75ab256','mcp_mail_send','mail','{"original_name":"send","title":null,"description":"Sends a note.","input_schema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"output_schema":null,"annotations":{"read_only":false,"destructive":true,"idempotent":null,"open_world":null},"meta":null}',1,1,'0bd98267ba1e39a066b1f3b02a9e7d9e9bbcecd83baddc7480bb79a2732aae70',1,1,0.0,'["agent","direct","mcp"]','[]',NULL,0.0,'2026-11-16 16:10:10.968971');
INSERT INTO "tools" VALUES('local','con_1c01d1e6e55fa640','user:local:usr_7286659df75ab256','mcp_mail_digest','mail','{"original_name":"digest","title":null,"description":"The SHA-256 of one of its environment variables.","input_schema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"output_schema":null,"annotations":{"read_only":true,"destructive":null,"idempotent":null,"open_world":null},"meta":null}',1,1,'295ff0374f0efdb35d267d21682449e4c96e114cc339f1ef46e44eef39e03941',1,1,0.0,'["agent","direct","mcp"]','[]',NULL,0.0,'2026-11-16 16:10:10.969018');
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
	bounds JSON NOT NULL, 
	preferences JSON NOT NULL, 
	is_active BOOLEAN NOT NULL, 
	external TEXT, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_users PRIMARY KEY (workspace, id), 
	CONSTRAINT fk_users_workspaces FOREIGN KEY(workspace) REFERENCES workspaces (id) ON DELETE CASCADE, 
	CONSTRAINT uq_users_workspace_name UNIQUE (workspace, name), 
	CONSTRAINT uq_users_external UNIQUE (external)
);
INSERT INTO "users" VALUES('local','owner','owner','admin','["mcp_integration"]','{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}','{"connectors":null,"auto_load":true,"bounds":{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}}',1,NULL,'2026-11-16 16:09:59.788907');
INSERT INTO "users" VALUES('local','usr_00efbe0396489139','boss','admin','["mcp_integration"]','{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}','{"connectors":null,"auto_load":true,"bounds":{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}}',1,NULL,'2026-11-16 16:10:10.169977');
INSERT INTO "users" VALUES('local','usr_7286659df75ab256','ann','member','["mcp_integration"]','{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}','{"connectors":null,"auto_load":true,"bounds":{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}}',1,NULL,'2026-11-16 16:10:10.279968');
INSERT INTO "users" VALUES('wsp_07719d404aaf924d','usr_b0430277ba519193','eve','admin','["mcp_integration"]','{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}','{"connectors":null,"auto_load":true,"bounds":{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}}',1,NULL,'2026-11-16 16:10:10.364604');
CREATE TABLE workspaces (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	approval TEXT NOT NULL, 
	bounds JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_workspaces PRIMARY KEY (id)
);
INSERT INTO "workspaces" VALUES('local','local','default','{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}','2026-11-16 16:09:52.264316');
INSERT INTO "workspaces" VALUES('wsp_07719d404aaf924d','acme','default','{"calls_per_hour":null,"tokens_per_day":null,"cost_per_day":null,"calls_per_minute":null,"max_concurrency":null,"max_connectors_per_thread":null}','2026-11-16 16:10:10.119504');
CREATE INDEX ix_results_created_at ON results (created_at);
CREATE INDEX ix_calls_started_at ON calls (started_at);
CREATE INDEX ix_calls_workspace_user_started_at ON calls (workspace, user, started_at);
CREATE INDEX ix_api_keys_workspace_user ON api_keys (workspace, user);
CREATE INDEX ix_approvals_expires_at ON approvals (expires_at);
CREATE INDEX ix_approvals_workspace_user_status ON approvals (workspace, user, status);
CREATE INDEX ix_authorization_flows_expires_at ON authorization_flows (expires_at);
CREATE INDEX ix_loaded_tools_loaded_at ON loaded_tools (loaded_at);
CREATE INDEX ix_agent_numbers_agent ON agent_numbers (agent);
CREATE INDEX ix_runs_finished_at ON runs (finished_at);
CREATE INDEX ix_runs_status_lease_until ON runs (status, lease_until);
CREATE INDEX ix_runs_workspace_created_at ON runs (workspace, created_at);
CREATE INDEX ix_runs_workspace_user_created_at ON runs (workspace, user, created_at);
CREATE INDEX ix_runs_workspace_user_thread_message ON runs (workspace, user, thread, message);
CREATE INDEX ix_runs_workspace_root ON runs (workspace, root);
CREATE INDEX ix_runs_workspace_parent_parent_call ON runs (workspace, parent, parent_call);
CREATE INDEX ix_questions_workspace_user_status ON questions (workspace, user, status);
CREATE INDEX ix_questions_workspace_root ON questions (workspace, root);
CREATE INDEX ix_questions_status_expires_at ON questions (status, expires_at);
CREATE INDEX ix_rollout_samples_at ON rollout_samples (at);
COMMIT;
