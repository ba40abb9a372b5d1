// The fleet page: every engine, worst first.

import { startTable } from "./page.js";
import { engineRow } from "./rows.js";

startTable("fleet", { one: "engine", many: "engines" }, engineRow);
