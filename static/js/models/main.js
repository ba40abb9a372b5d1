// The page of models: the engines that serve the same one added up, worst first.

import { startTable } from "../fleet/page.js";
import { modelRow } from "./rows.js";

startTable("models", { one: "model", many: "models" }, modelRow);
