"use strict";
// From the embedded JSON to what the page shows: sections of tiles and figures. A figure is a table, mostly with a chart
// above it. A column that begins with ">" is aligned to the right. A chart is {kind, x, y, categories, series}:
//   bars   horizontal bars by category, beside each other or stacked   points: [value, low, high, note]
//   rows   points on lines by category, each with its spread           points: [value, low, high, note]
//   cloud  many points by category                                     points: [value, row, note]
//   plane  points and lines between two scales                         points: [x, y, note]
//   lanes  spans of time by category                                   points: [from, to, row, note]
// A value of null is absent. A category may have two lines. charts.js draws all of it.

page.sections = (report) => {
  const most = { jobs: 40, layers: 60, programs: 25, shapes: 40, rejected: 50, spans: 3000 };
  const dash = "–";
  const of = (kind) => report.sources.filter((source) => source.kind === kind);

  // --- numbers as a person reads them

  const short = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.1 ? 2 : 3);
  const legible = (value) => {
    if (typeof value !== "number") return dash;
    if (value === 0) return "0";
    if (Math.abs(value) < 0.01) return String(Number(value.toPrecision(2)));
    return Math.abs(value) < 1e4 ? short(value) : page.grouped(value);
  };
  const positive = (value) => (value > 0 ? legible(value) : dash);
  const percent = (part, whole) => {
    if (!(whole > 0)) return dash;
    const share = 100 * part / whole;
    return `${share.toFixed(share > 0 && share < 10 ? 1 : 0)} %`;
  };
  const duration = (ms) => {
    const [most, unit, text] = [[1e4, 1, "ms"], [6e5, 1e3, "s"], [3.6e7, 6e4, "min"], [Infinity, 3.6e6, "h"]].find(([below]) => Math.abs(ms) < below);
    return `${short(ms / unit)} ${text}`;
  };
  const size = (bytes) => {
    const unit = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 4);
    const value = bytes / 1024 ** unit;
    return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
  };
  const counted = (count, what, many = what + "s") => `${count} ${count === 1 ? what : many}`;
  const spread = ({ median, low, high }) => `${legible(median)} (${legible(low)} to ${legible(high)})`;
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  const unique = (values) => [...new Set(values)];
  const groupBy = (values, keyOf) => {
    const groups = new Map();
    for (const value of values) {
      const key = keyOf(value);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(value);
    }
    return groups;
  };

  // --- charts

  const axis = (title, unit, scale = "linear", mark = null) => ({ title, unit, scale, mark });
  const inks = ["blue", "vermillion", "green", "purple", "orange", "sky", "grey", "brown", "olive", "pink", "indigo", "slate", "lime", "maroon"];
  // Each series of a chart gets a colour of its own: the one it names, else the first free one, else steps of the golden
  // angle around the colour wheel.
  const inked = (series) => {
    const taken = new Set();
    let beyond = 0;
    for (const one of series) {
      const wanted = one.ink || "blue";
      one.ink = taken.has(wanted) ? inks.find((ink) => !taken.has(ink)) || `hue-${beyond++ * 137 % 360}` : wanted;
      taken.add(one.ink);
    }
    return series;
  };
  const chart = (kind, x, categories, series, more = {}) => ({ kind, x, categories, series: inked(series), ...more });
  const absent = [null, null, null];
  const holdsValue = (series) => series.points.some(([value]) => value !== null);
  const figure = (id, title, caption, columns, rows, drawn = null) => ({ id, title, caption, columns, rows, chart: drawn });

  // --- overview

  const failed = (job) => job.status !== "ok";
  const foundIn = {
    memory: (counts) => counts.memory_hits, disk: (counts) => counts.disk_hits,
    layer: ({ shared }) => (shared ? shared.layer_hits : 0), remote: ({ shared }) => (shared ? shared.hits : 0),
  };
  const hits = (counts) => sum(Object.values(foundIn).map((of) => of(counts)));
  const asked = (counts) => hits(counts) + counts.misses;
  const rowName = (one) => {
    const name = (one.group ? one.group + ": " : "") + one.name;
    return one.device && !name.includes(one.device) ? `${name}, ${one.device}` : name;
  };

  const benchTiles = ({ label, content: { areas, machine, seconds, started } }) => {
    const figures = areas.flatMap((area) => area.figures);
    const peers = figures.filter((one) => one.peer);
    const targets = figures.filter((one) => one.target);
    const met = targets.filter((one) => one.target.met).length;
    const wrong = figures.filter((one) => one.verified === false).length;
    const tiles = [[label, counted(figures.length, "figure"), `${duration(seconds * 1e3)}, begun ${started}`]];
    if (peers.length) {
      tiles.push(["better than the peer", `${peers.filter((one) => one.ratio.median > 1).length} of ${peers.length}`, "by the median of the ratio"]);
    }
    if (targets.length) {
      tiles.push(["targets met", `${met} of ${targets.length}`, met === targets.length ? "none was missed" : "the missed ones are listed below"]);
    }
    tiles.push(["machine", machine.quiet ? "quiet" : "not quiet",
      `load ${legible(machine.load_before)} before, noise ${legible(machine.noise_percent)} %${wrong ? ", " + counted(wrong, "wrong result") : ""}`]);
    return tiles;
  };

  const runTile = ({ label, content: { jobs, total_ms } }) => {
    const bad = jobs.filter(failed).length;
    const verified = jobs.filter((job) => job.verified === true).length;
    return [label, counted(jobs.length, "job"), `${duration(total_ms)} in all, ${verified} verified${bad ? `, ${bad} failed` : ""}`];
  };

  const overview = () => {
    const benches = of("bench");
    const tiles = [
      ...benches.flatMap(benchTiles),
      ...of("run").map(runTile),
      ...of("cache").map(({ label, content }) => [label, percent(hits(content), asked(content)) + " found",
        `${counted(content.programs, "program")}, ${duration(content.saved_ms)} of building saved`]),
      ...of("tuning").map(({ label, content: { records } }) => [label, counted(records.length, "variant"),
        counted(records.filter((record) => record.verdict === "winner").length, "winner")]),
      ...of("trace").map((source) => [source.label, counted(spansOf(source.content).length, "span"), counted(lanesOf(source.content).length, "lane")]),
    ];
    const figures = [];
    const failures = of("run").flatMap(({ label, content }) => content.jobs.filter(failed).map((job) => [job.name, label, job.status, job.error || ""]));
    if (failures.length) figures.push(figure("failed", "Jobs that failed", "", ["Job", "Run", "Status", "Why"], failures));
    const missed = benches.flatMap(({ content }) => content.areas.flatMap((area) => [
      ...(area.skipped ? [[area.title, "not measured: " + area.skipped, dash, dash]] : []),
      ...area.figures.filter((one) => (one.target && !one.target.met) || one.verified === false).map((one) => [
        `${area.title}: ${one.group ? one.group + ": " : ""}${one.name}`, one.target && !one.target.met ? one.target.text : "a correct result",
        `${legible(one.kiln.median)} ${one.unit}`, one.peer ? `${legible(one.ratio.median)} ×` : dash]),
    ]));
    if (missed.length) {
      figures.push(figure("missed", "What fell short", "Missed targets, figures whose output was wrong, and areas that were not measured.",
        ["Figure", "Target", ">Kiln", ">Ratio"], missed));
    }
    benches.forEach(({ label, content: { machine, kiln, commit } }, index) => {
      const changed = commit && commit.endsWith("+changes") ? " with changes" : "";
      figures.push(figure(`machine-${index + 1}`, "Machine and versions: " + label, "", ["What", "Which"], [
        ["processor", `${machine.cpu}, ${counted(machine.cores, "core")}`], ["memory", size(machine.memory_bytes)],
        ["system", `${machine.os}, ${machine.kernel}`], ["kiln", kiln + (commit ? `, commit ${commit.slice(0, 12)}${changed}` : "")],
        ...Object.entries(machine.versions).map(([name, version]) => [name, version || "not there"])]));
    });
    return [{ id: "overview", title: "Overview", tiles, figures }];
  };

  // --- bench: a section for each area

  const areaColumns = ["Figure", "Unit", ">Kiln (quartiles)", "Peer", ">Peer's (quartiles)", ">Ratio (spread)", "Target", "Verified", ">Samples"];
  const areaRows = (figures) => figures.map((one) => [rowName(one), one.unit, spread(one.kiln), one.peer ? one.peer.name : dash,
    one.peer ? spread(one.peer) : dash, one.peer ? spread(one.ratio) + " ×" : dash,
    one.target ? `${one.target.text}: ${one.target.met ? "met" : "missed"}` : dash,
    one.verified === null ? dash : one.verified ? "yes" : "no", String(one.kiln.samples)]);
  const contestName = (one) => rowName(one) + (one.peer ? "\nbeside " + one.peer.name : "");
  const pointOf = (contender, note) => [contender.median, contender.low, contender.high, note];
  const peerPoint = (one) => (one.peer && one.peer.low > 0 ? pointOf(one.peer, one.peer.name) : absent);  // what a logarithmic scale can show
  const unitAxis = ({ unit, better }) => axis(`${unit}, ${better} is better`, unit, "logarithmic");

  const ratioFigure = (area, id) => {
    const contests = area.figures.filter((one) => one.peer && one.ratio.median > 0);
    if (!contests.length) return [];
    const verdict = ({ ratio }) => (ratio.low > 1 ? 0 : ratio.high < 1 ? 1 : 2);
    const series = [["Kiln is better", "blue"], ["the peer is better", "vermillion"], ["within the spread", "grey"]].map(([name, ink], index) => ({
      name, ink, points: contests.map((one) => (verdict(one) === index ? pointOf(one.ratio, "beside " + one.peer.name) : absent)),
    })).filter(holdsValue);
    return [figure(id, "Kiln beside its peers",
      "Each point is a ratio of the same work in the same run, with its spread. Right of the line Kiln is better, whether less or more is good. "
      + "The scale is logarithmic: twice as fast is as far right of the line as half as fast is left of it.",
      areaColumns, areaRows(area.figures),
      chart("rows", axis("times better than the peer", "times", "logarithmic", { value: 1, text: "equal" }), contests.map(contestName), series))];
  };

  // One row a figure: Kiln's point and its peer's.
  const besideFigure = (figures, id, columns, rows) => {
    const { unit } = figures[0];
    const series = [{ name: "Kiln", points: figures.map((one) => pointOf(one.kiln, "Kiln")) },
      { name: "peer", ink: "orange", points: figures.map(peerPoint) }].filter(holdsValue);
    return figure(id, unit === "x" ? "As ratios" : "In " + unit, "Medians, with the quartiles as bars beside them.", columns, rows,
      chart("rows", unitAxis(figures[0]), figures.map(contestName), series));
  };

  // One row a group, as a layer: every contender on each device.
  const groupedFigure = (figures, groups, id, columns, rows) => {
    // Names tell contenders apart where one device has figures of several names in one group.
    const named = [...groupBy(figures, (one) => JSON.stringify([one.group, one.device])).values()].some((set) => unique(set.map((one) => one.name)).length > 1);
    // A peer that was measured again beside each of Kiln's figures of a group is a contender each time.
    const withPeer = figures.filter((one) => one.peer);
    const again = new Set([...groupBy(withPeer, (one) => JSON.stringify([one.group, one.peer.name])).values()]
      .filter((set) => unique(set.map((one) => one.peer.median)).length > 1).map((set) => set[0].peer.name));
    const ours = new Map(), theirs = new Map();
    const put = (to, inksOfSide, name, group, point) => {
      if (!to.has(name)) to.set(name, { name, ink: inksOfSide[Math.min(to.size, inksOfSide.length - 1)], points: groups.map(() => absent) });
      to.get(name).points[group] = point;
    };
    for (const one of figures) {
      const group = groups.indexOf(one.group || "");
      const mine = `Kiln${one.device ? ", " + one.device : ""}${named ? ": " + one.name : ""}`;
      put(ours, ["blue", "green", "sky"], mine, group, pointOf(one.kiln, "Kiln"));
      if (peerPoint(one) === absent) continue;
      put(theirs, ["orange", "vermillion", "purple", "grey"], one.peer.name + (again.has(one.peer.name) ? " beside " + mine : ""), group, peerPoint(one));
    }
    return figure(id, "Side by side, in " + figures[0].unit,
      "One row a group, as a layer or a number of threads. Medians, with the quartiles as bars beside them.", columns, rows,
      chart("rows", unitAxis(figures[0]), groups, [...ours.values(), ...theirs.values()]));
  };

  const valueFigures = (area, id) => {
    const drawable = area.figures.filter((one) => one.kiln.low > 0);
    const sets = [...groupBy(drawable, (one) => JSON.stringify([one.unit, one.better, one.group !== null])).values()];
    return sets.filter((set) => set.length > 1 || set[0].peer).map((set, index) => {
      const { unit } = set[0];
      const groups = unique(set.map((one) => one.group || ""));
      const columns = ["Figure", `>Kiln, ${unit}`, "Peer", `>Peer's, ${unit}`];
      const rows = set.map((one) => [rowName(one), spread(one.kiln), one.peer ? one.peer.name : dash, one.peer ? spread(one.peer) : dash]);
      return groups.length < 2 ? besideFigure(set, `${id}-${index + 1}`, columns, rows) : groupedFigure(set, groups, `${id}-${index + 1}`, columns, rows);
    });
  };

  const areaSection = ({ area, label }, index) => {
    const id = `bench-${index + 1}-${area.name.replace(/[^a-zA-Z0-9]/g, "-")}`;
    const title = area.title + (of("bench").length > 1 ? ` (${label})` : "");
    if (area.skipped && !area.figures.length) return { id, title, lead: "Not measured: " + area.skipped, figures: [] };
    const targets = area.figures.filter((one) => one.target);
    const lead = `${counted(area.figures.length, "figure")}, measured in ${duration(area.seconds * 1e3)}.`
      + (targets.length ? ` ${targets.filter((one) => one.target.met).length} of ${counted(targets.length, "target")} met.` : "")
      + (area.skipped ? ` Missing: ${area.skipped}.` : "");
    const ratios = ratioFigure(area, id + "-ratios");
    const all = ratios.length ? [] : [figure(id + "-all", "Every figure", "", areaColumns, areaRows(area.figures))];
    return { id, title, lead, figures: [...ratios, ...valueFigures(area, id), ...all] };
  };
  const bench = () => of("bench").flatMap(({ label, content }) => content.areas.map((area) => ({ area, label }))).map(areaSection);

  // --- start: where the time to the first results went

  const tiers = [["built", "programs built", "vermillion"], ["disk", "programs from disk", "blue"],
    ["memory", "programs from memory", "green"], ["layer", "programs from layers", "olive"], ["remote", "programs from remotes", "orange"],
    ["library", "prepared by a library", "purple"]];
  const ran = (job) => job.status === "ok" && job.runs > 0;
  const ranJobs = (run) => run.jobs.filter(ran);
  const isTier = (name) => (job) => job.program.tier === name;
  // A job's own part of its first result: each counts the set-up of the process, which is one.
  const ownFirst = (run, job) => Math.max(0, job.ms.first_result - (run.setup_ms || 0));
  const restOf = (run, job) => Math.max(0, ownFirst(run, job) - job.program.build_ms);

  const startsFigure = (runs) => {
    const starts = runs.map(({ label, content }) => {
      const jobs = ranJobs(content);
      return {
        label, told: typeof content.setup_ms === "number", setup: content.setup_ms || 0, rest: sum(jobs.map((job) => restOf(content, job))),
        tiers: tiers.map(([tier]) => jobs.filter(isTier(tier))).map((of) => ({ programs: of.length, ms: sum(of.map((job) => job.program.build_ms)) })),
      };
    });
    const bar = (value, note = "") => [value, null, null, note];
    const series = [
      { name: "set-up of the process", ink: "grey", points: starts.map((start) => bar(start.setup)) },
      ...tiers.map(([, name, ink], index) => ({ name, ink, points: starts.map(({ tiers: of }) => bar(of[index].ms, counted(of[index].programs, "job"))) })),
      { name: "inputs and first run", ink: "sky", points: starts.map((start) => bar(start.rest)) },
    ].filter(({ points }) => points.some(([value]) => value !== 0));
    const all = (start) => start.setup + start.rest + sum(start.tiers.map((tier) => tier.ms));
    return figure("start-by-tier", "Time to every job's first result",
      "One bar a run: the process's set-up once, then of every job the time until its program was ready, by the tier that answered, and the rest: "
      + "inputs, first dispatch, first run, readback. Later runs and verification are not included. Jobs that ran at the same time are added up.",
      ["Run", ">Setup, ms", ...tiers.flatMap(([tier]) => [`>${tier}: jobs`, `>${tier}: ms`]), ">Inputs and first run, ms", ">All, ms"],
      starts.map((start) => [start.label, start.told ? legible(start.setup) : "not recorded",
        ...start.tiers.flatMap((tier) => [String(tier.programs), legible(tier.ms)]), legible(start.rest), legible(all(start))]),
      chart("bars", axis("time, ms", "ms"), starts.map((start) => start.label), series, { stacked: true }));
  };

  const jobsFigure = ({ label, content: run }, index) => {
    const jobs = ranJobs(run);
    let drawn = jobs;
    let caption = "The time until each job's program was ready, and the rest of the way to its first result.";
    if (jobs.length > most.jobs) {
      drawn = [...jobs].sort((a, b) => ownFirst(run, b) - ownFirst(run, a)).slice(0, most.jobs);
      caption += ` The ${most.jobs} longest of ${jobs.length} jobs are drawn.`;
    }
    const series = [
      ...tiers.map(([tier, name, ink]) => ({ name, ink, points: drawn.map((job) => (isTier(tier)(job) ? [job.program.build_ms, null, null] : absent)) })),
      { name: "inputs and first run", ink: "sky", points: drawn.map((job) => [restOf(run, job), null, null]) },
    ].filter(holdsValue);
    return figure(`start-jobs-${index + 1}`, "Job by job: " + label, caption,
      ["Job", "Device", "Tier", ">Program, ms", ">Inputs, first run, ms", ">A later run, ms"],
      jobs.map((job) => [job.name, job.device ? job.device.id : "", job.program.tier || dash, legible(job.program.build_ms), legible(restOf(run, job)), legible(job.ms.wall_median)]),
      chart("bars", axis("time, ms", "ms"), drawn.map((job) => job.name), series, { stacked: true }));
  };

  const start = () => {
    const runs = of("run").filter(({ content }) => content.jobs.some(ran));
    if (!runs.length) return [];
    return [{
      id: "start", title: "Where the start went",
      lead: "A start is over when every job has its first output in host memory. A program that was built once is found again: in a later process on disk, in the same process in memory.",
      figures: [startsFigure(runs), ...runs.map(jobsFigure)],
    }];
  };

  // --- cache: where programs were found, and what that saved

  const foundFigure = (all) => {
    const kinds = [["in memory", "green", foundIn.memory], ["on disk", "blue", foundIn.disk], ["in a layer", "olive", foundIn.layer],
      ["in a remote", "orange", foundIn.remote], ["not found", "vermillion", (counts) => counts.misses]];
    const rejected = (counts) => Object.entries(counts.rejected).filter(([, count]) => count !== 0).map(([reason, count]) => `${count} ${reason}`).join(", ") || "0";
    return figure("cache-found", "Where programs were found",
      "How often a program was requested, by where it was found. A bar is one run, or all processes of one cache together. "
      + "What a library prepares lasts as long as its process, so a cache never holds it: it counts as not found.",
      ["Source", ">Memory", ">Disk", ">Layers", ">Remotes", ">Not found", ">Hit ratio", ">Built", ">Prepared", "Rejected"],
      all.map(({ label, counts }) => [label, ...kinds.map(([, , of]) => String(of(counts))),
        percent(hits(counts), asked(counts)), String(counts.builds), String(counts.prepared), rejected(counts)]),
      chart("bars", axis("requests", "requests"), all.map(({ label }) => label),
        kinds.map(([name, ink, of]) => ({ name, ink, points: all.map(({ counts }) => [of(counts), null, null, percent(of(counts), asked(counts))]) }))
          .filter(({ points }) => points.some(([value]) => value !== 0)), { stacked: true }));
  };

  const savedFigure = (all) => figure("cache-saved", "Build time saved",
    "For each program that was found, the time that its build took when it was made. First dispatches, in which drivers make machine code, are not included.",
    ["Source", ">Saved", ">Hits", ">Saved a hit, ms"],
    all.map(({ label, counts }) => [label, counts.saved_ms === 0 ? "0" : duration(counts.saved_ms), String(hits(counts)), hits(counts) ? legible(counts.saved_ms / hits(counts)) : dash]),
    chart("bars", axis("build time saved, s", "s"), all.map(({ label }) => label),
      [{ name: "saved", points: all.map(({ counts }) => [counts.saved_ms / 1e3, null, null, counted(hits(counts), "hit")]) }], { stacked: false }));

  const programsFigure = ({ label, content }, index) => {
    const built = (content.programs_listed || []).filter((program) => program.build_ms > 0);
    if (!built.length) return [];
    const cost = (program) => program.build_ms + program.first_dispatch_ms;
    const nameOf = ({ shape, variant, label: name }) => (shape ? shape + (variant ? " " + variant.split(":")[0] : "") : name || "no label");
    const shown = [...built].sort((a, b) => cost(b) - cost(a)).slice(0, most.programs);
    return [figure(`cache-programs-${index + 1}`, "What a program costs to make: " + label,
      "The build of each stored program, and its first dispatch where that was timed."
      + (built.length > shown.length ? ` The ${shown.length} slowest of ${built.length} programs are shown.` : ""),
      ["Program", "Variant", ">Build, ms", ">First dispatch, ms", ">Used", ">Size"],
      shown.map((program) => [nameOf(program), program.variant || dash, legible(program.build_ms), positive(program.first_dispatch_ms), String(program.times_used), size(program.bytes)]),
      chart("bars", axis("time, ms", "ms"), shown.map(nameOf), [
        { name: "build", ink: "vermillion", points: shown.map((program) => [program.build_ms, null, null, counted(program.times_used, "use")]) },
        { name: "first dispatch", ink: "orange", points: shown.map((program) => [program.first_dispatch_ms, null, null]) }], { stacked: true }))];
  };

  const cache = () => {
    const caches = of("cache");
    const all = [...of("run").map(({ label, content }) => ({ label, counts: content.cache })),
      ...caches.map(({ label, content }) => ({ label: `${label}, ${counted(content.processes, "process", "processes")}`, counts: content }))]
      .filter(({ counts }) => asked(counts) !== 0);
    if (!all.length && !caches.length) return [];
    const stored = caches.flatMap(({ label, content }) => (content.devices.length
      ? content.devices.map((device) => [label, device.device || device.folder, device.driver || dash, String(device.programs), size(device.bytes)])
      : [[label, "no program", dash, "0", size(0)]]));
    return [{
      id: "cache", title: "The program cache", lead: "What was requested, where it was found, and the build time that was saved.",
      figures: [...(all.length ? [foundFigure(all), savedFigure(all)] : []), ...caches.flatMap(programsFigure),
        ...(caches.length ? [figure("cache-devices", "What is stored", "Programs by the device and driver that they were built for.",
          ["Cache", "Device", "Driver", ">Programs", ">Size"], stored)] : [])],
    }];
  };

  // --- devices: the same job on each device

  const devices = () => {
    const jobs = of("run").flatMap(({ label, content }) => ranJobs(content).map((job) => ({ job, label, id: job.device ? job.device.id : "" })));
    if (!jobs.length) return [];
    const severalRuns = new Set([...groupBy(jobs, ({ id }) => id)].filter(([, of]) => unique(of.map(({ label }) => label)).length > 1).map(([id]) => id));
    // Jobs of one name and of different work are different jobs. A device that fuses a pipeline's steps moves fewer bytes.
    const keyOf = ({ name, op, work }) => JSON.stringify([name, op, work && work.flops, work && op !== "pipeline" && work.bytes]);
    const layers = [...new Map(jobs.map(({ job }) => [keyOf(job), job]))].map(([key, { name, work }]) => ({ key, name, work }));
    const namesakes = groupBy(layers, ({ name }) => name);
    const rowOf = ({ name, work }) => (namesakes.get(name).length > 1 && work ? `${name}, ${work.flops > 0 ? legible(work.flops / 1e6) + " MFLOP" : size(work.bytes)}` : name);
    const columns = [...groupBy(jobs, ({ id, label }) => (severalRuns.has(id) ? `${id} (${label})` : id))].map(([name, of]) => {
      const byLayer = new Map();
      for (const { job } of of) if (!byLayer.has(keyOf(job))) byLayer.set(keyOf(job), job);
      return { name, byLayer };
    });
    const drawn = layers.slice(0, most.layers);
    const note = (job) => (job.gflops > 0 ? legible(job.gflops) + " GFLOP/s, " : "") + counted(job.runs, "run");
    const series = columns.map(({ name, byLayer }) => ({ name, points: drawn.map(({ key }) => {
      const job = byLayer.get(key);
      return job ? [job.ms.wall_median, job.ms.wall_min, job.ms.wall_max, note(job)] : absent;
    }) }));
    const rows = layers.map((layer) => {
      const on = columns.filter(({ byLayer }) => byLayer.has(layer.key));
      const time = ({ byLayer }) => byLayer.get(layer.key).ms.wall_median;
      const fastest = on.reduce((best, one) => (time(one) < time(best) ? one : best), on[0]);
      const cells = columns.flatMap(({ byLayer }) => {
        const job = byLayer.get(layer.key);
        return job ? [legible(job.ms.wall_median), `${legible(job.ms.wall_min)} to ${legible(job.ms.wall_max)}`, positive(job.gflops)] : [dash, dash, dash];
      });
      return [rowOf(layer), ...cells, ...(columns.length > 1 ? [fastest.name] : [])];
    });
    return [{
      id: "devices", title: "Devices, job by job",
      lead: "The same work on each device that the runs used: from the request to the output in host memory, with the weights resident.",
      figures: [figure("devices-time", "Time of a run",
        "The point is the median, the bar beside it reaches from the shortest to the longest run. The longest is often the first, which compiles on some drivers. "
        + "The scale is logarithmic: equal distances are equal ratios. Less is better."
        + (drawn.length < layers.length ? ` The first ${drawn.length} of ${layers.length} jobs are drawn.` : ""),
        ["Job", ...columns.flatMap(({ name }) => [`>${name}, ms`, ">least to most", ">GFLOP/s"]), ...(columns.length > 1 ? ["Fastest"] : [])], rows,
        chart("rows", axis("time of a run, ms", "ms", "logarithmic"), drawn.map(rowOf), series))],
    }];
  };

  // --- roofline: rates by the work that a byte carries, below what the device could do

  const rooflineFigure = ([device, rated], index) => {
    const roof = Math.max(0, ...rated.map(({ job }) => job.work.roof_gflops || 0));
    const bandwidth = Math.max(...rated.map(({ intensity, job }) => job.gflops / intensity));  // GB/s; what the memory can do at least
    const left = Math.min(...rated.map(({ intensity }) => intensity)) / 2;
    const right = Math.max(...rated.map(({ intensity }) => intensity)) * 2;
    const bend = roof > 0 ? Math.min(Math.max(roof / bandwidth, left), right) : right;
    const line = (name, ink, ...points) => ({ name, ink, line: true, points: points.map(([x, y]) => [x, y, ""]) });
    const series = [
      { name: "jobs", line: false, points: rated.map(({ job, intensity }) => [intensity, job.gflops, job.name]) },
      line(`highest rate of bytes, ${legible(bandwidth)} GB/s`, "vermillion", [left, left * bandwidth], [bend, bend * bandwidth]),
      ...(roof > 0 ? [line(`roof, ${legible(roof)} GFLOP/s`, "grey", [left, roof], [right, roof])] : []),
    ];
    return figure(`roofline-${index + 1}`, "Rates on " + device,
      "Direct FLOPs by the bytes of inputs, constants and outputs, each moved once; of a job that several runs have, the fastest. "
      + "The slope is the highest rate in bytes that one of these jobs reached: memory can do at least that. It is no bound."
      + (roof > 0 ? ` The flat line is the roof of ${legible(roof)} GFLOP/s, above which a rate would be an error: cores × lanes × two units × the highest clock. No real run comes near it.`
        : " The device reports nothing that a roof of computing could be derived from."),
      ["Job", ">FLOP a byte", ">GFLOP/s", ">GB/s", ">Of the roof", "Variant"],
      rated.map(({ job, intensity }) => [job.name, legible(intensity), legible(job.gflops), legible(job.gflops / intensity), percent(job.gflops, roof), job.variant || dash]),
      chart("plane", axis("FLOP a byte", "FLOP a byte", "logarithmic"), null, series, { y: axis("GFLOP/s", "GFLOP/s", "logarithmic") }));
  };

  const roofline = () => {
    const byDevice = new Map();
    for (const { content } of of("run")) {
      for (const job of ranJobs(content)) {
        if (!job.device || !job.work || !(job.work.flops > 0) || !(job.work.bytes > 0) || !(job.gflops > 0)) continue;
        const intensity = job.work.flops / job.work.bytes;
        const rated = byDevice.get(job.device.id) || new Map();
        byDevice.set(job.device.id, rated);
        const key = JSON.stringify([job.name, intensity]);
        if (!rated.has(key) || rated.get(key).job.gflops < job.gflops) rated.set(key, { job, intensity });
      }
    }
    if (!byDevice.size) return [];
    const figures = [...byDevice].sort(([a], [b]) => (a < b ? -1 : 1)).map(([device, rated]) => [device, [...rated.values()]]).map(rooflineFigure);
    return [{ id: "roofline", title: "Roofline", lead: "How fast each job was for the work that a byte of it carries.", figures }];
  };

  // --- tuning: every variant that was measured, by shape

  const median = (times) => (times.length % 2 ? times[(times.length - 1) / 2] : (times[times.length / 2 - 1] + times[times.length / 2]) / 2);
  const familyOf = (variant) => variant.split(":")[0];
  const numbersOf = (spec) => Object.fromEntries([...spec.matchAll(/(\S+?)=(-?\d+)(?=\s|$)/g)].map(([, name, number]) => [name, Number(number)]));
  const shapeWords = (spec) => {
    const n = numbersOf(spec);
    if (spec.startsWith("gemm ")) return `${n.m}×${n.n}×${n.k}`;
    if (!spec.startsWith("conv2d ")) return spec.slice(0, 40);
    return `${n.r}×${n.s}${n.stride_y === 1 ? "" : " /" + n.stride_y}, ${n.c}→${n.k}${n.groups > 1 ? " in " + n.groups : ""}, ${n.h}${n.h === n.w ? "²" : "×" + n.w}`
      + (n.n === 1 ? "" : ", batch " + n.n) + (n.bias ? ", bias" : "") + (spec.includes(" activation=relu") ? ", relu" : "")
      + (spec.includes(" accuracy=winograd") ? ", Winograd allowed" : "");
  };
  // Direct FLOPs of a convolution or a product; 0: not known.
  const flopsOf = (spec) => {
    const n = numbersOf(spec);
    if (spec.startsWith("gemm ")) return 2 * n.m * n.n * n.k;
    if (!spec.startsWith("conv2d ") || !(n.groups > 0)) return 0;
    const extent = (from, kernel, pad, dilation, stride) => Math.trunc((from + 2 * pad - dilation * (kernel - 1) - 1) / stride) + 1;
    return 2 * n.n * n.k * extent(n.h, n.r, n.pad_y, n.dilation_y, n.stride_y) * extent(n.w, n.s, n.pad_x, n.dilation_x, n.stride_x) * (n.c / n.groups) * n.r * n.s;
  };

  const shapesOf = (records) => [...groupBy(records, (record) => record.spec)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([spec, all]) => {
    const measured = (record) => record.verdict !== "rejected" && record.wall_ms.length > 0;
    const timed = all.filter(measured).map((record) => ({ ...record, ms: median(record.wall_ms) })).sort((a, b) => a.ms - b.ms);
    return {
      spec, timed, words: shapeWords(spec), rejected: all.filter((record) => !measured(record)),
      winner: timed.findLast((record) => record.verdict === "winner"), plain: timed.find((record) => record.variant.endsWith("/plain")),
    };
  });

  const landscapeChart = (shapes) => {
    const families = new Map();
    const winners = [];
    // Points are spread about their row's line, the same way each time.
    const beside = (index) => ((index * 0.618033988749895) % 1 - 0.5) * 0.62;
    shapes.forEach((shape, row) => shape.timed.forEach((record, index) => {
      const point = [record.ms / shape.timed[0].ms, row, `${record.variant}: ${legible(record.ms)} ms`];
      if (record === shape.winner) {
        winners.push(point);
      } else {
        const family = familyOf(record.variant);
        if (!families.has(family)) families.set(family, { name: family, ink: "vermillion", points: [] });
        point[1] += beside(index);
        families.get(family).points.push(point);
      }
    }));
    // The winners are drawn over the others.
    return chart("cloud", axis("times the fastest variant's time", "times", "logarithmic", { value: 1, text: "the fastest" }),
      shapes.map((shape) => shape.words), [...families.values(), { name: "winner", points: winners }]);
  };

  // By "family: key=value": for each shape, how much longer the best variant with that value takes than the best of all.
  const parameterCosts = (shapes) => {
    const costs = new Map();
    for (const { timed } of shapes) {
      const best = new Map();
      for (const { variant, ms } of timed) {
        const [family, ...rest] = variant.split(":");
        for (const parameter of rest.join(":").split(",").filter(Boolean)) {
          if (!best.has(`${family}: ${parameter}`)) best.set(`${family}: ${parameter}`, ms);
        }
      }
      for (const [parameter, ms] of best) costs.set(parameter, [...(costs.get(parameter) || []), ms / timed[0].ms]);
    }
    const keyOf = (parameter) => parameter.split("=")[0];
    const values = groupBy(costs.keys(), keyOf);
    const numberOf = (parameter) => parseInt(parameter.slice(parameter.indexOf("=") + 1), 10) || 0;
    return [...costs].filter(([parameter]) => values.get(keyOf(parameter)).length > 1)  // else there is nothing to choose
      .sort(([a], [b]) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : numberOf(a) - numberOf(b) || (a < b ? -1 : 1)))
      .map(([parameter, ratios]) => [parameter, ratios.sort((a, b) => a - b)]);
  };

  const parametersFigure = (shapes, id) => {
    const costs = parameterCosts(shapes);
    if (!costs.length) return [];
    return [figure(id, "What a parameter's value costs",
      "For each shape, the fastest variant with that value against the fastest of all: at 1 the value loses nothing. The point is the median over the shapes, the bar reaches from the least to the most.",
      ["Parameter", ">Median, times", ">Least to most", ">Shapes"],
      costs.map(([parameter, ratios]) => [parameter, legible(median(ratios)), `${legible(ratios[0])} to ${legible(ratios.at(-1))}`, String(ratios.length)]),
      chart("rows", axis("times the fastest variant's time", "times", "logarithmic", { value: 1, text: "loses nothing" }), costs.map(([parameter]) => parameter),
        [{ name: "fastest with this value", points: costs.map(([, ratios]) => [median(ratios), ratios[0], ratios.at(-1), counted(ratios.length, "shape")]) }]))];
  };

  const tuningSection = ({ device, label, shapes, damaged }, index) => {
    const id = `tuning-${index + 1}`;
    const timed = shapes.filter((shape) => shape.timed.length);
    const drawn = timed.slice(0, most.shapes);
    const rejected = shapes.flatMap((shape) => shape.rejected.map((record) => [shape.words, record.variant, record.why || "no time"]));
    const landscape = figure(id + "-landscape", "Landscape",
      "One row a shape, one point a variant: how many times longer it takes than the fastest of its row. Winners were timed in rounds with their rivals, "
      + "the others a few runs each in the search: a winner need not stand at 1."
      + (drawn.length < timed.length ? ` The first ${drawn.length} of ${timed.length} shapes are drawn.` : ""),
      ["Shape", ">Variants timed", ">Rejected", "Winner", ">Winner, ms", ">GFLOP/s", ">Plain kernel, ms", ">Slowest, ms"],
      shapes.map(({ spec, words, timed: of, rejected: bad, winner, plain }) => [words, String(of.length), String(bad.length), winner ? winner.variant : dash,
        winner ? positive(winner.ms) : dash, winner && winner.ms > 0 ? positive(flopsOf(spec) / winner.ms / 1e6) : dash,
        plain ? legible(plain.ms) : dash, of.length ? legible(of.at(-1).ms) : dash]),
      drawn.length ? landscapeChart(drawn) : null);
    const refused = rejected.length ? [figure(id + "-rejected", "Rejected variants",
      "Variants that hung, crashed or computed wrong results are never used." + (rejected.length > most.rejected ? ` The first ${most.rejected} of ${rejected.length}.` : ""),
      ["Shape", "Variant", "Why"], rejected.slice(0, most.rejected))] : [];
    return {
      id, title: `Tuning of device ${device.slice(0, 8)} (${label})`,
      lead: `${counted(shapes.length, "shape")}, ${counted(sum(shapes.map((shape) => shape.timed.length)), "variant")} timed, each after its whole output was compared with the reference; ${rejected.length} rejected.`
        + (damaged ? ` ${counted(damaged, "damaged line")} of the file left out.` : ""),
      figures: [landscape, ...parametersFigure(timed, id + "-parameters"), ...refused],
    };
  };
  const tuning = () => of("tuning").flatMap(({ label, content: { records, damaged } }) => [...groupBy(records, (record) => record.device)]
    .sort(([a], [b]) => (a < b ? -1 : 1)).map(([device, all]) => ({ device, label, damaged, shapes: shapesOf(all) }))).map(tuningSection);

  // --- lanes: what each lane of a trace was busy with, and when

  const laneKey = ({ pid, tid }) => `${pid}/${tid}`;
  function spansOf({ traceEvents }) { return traceEvents.filter(({ ph }) => ph === "X").sort((a, b) => a.ts - b.ts); }
  function lanesOf({ traceEvents }) {
    const named = (what, keyOf) => new Map(traceEvents.filter(({ ph, name }) => ph === "M" && name === what).map((event) => [keyOf(event), event.args.name]));
    const processes = named("process_name", ({ pid }) => pid), threads = named("thread_name", laneKey);
    return [...groupBy(traceEvents.filter(({ ph }) => ph === "X"), laneKey)].map(([key, [event]]) => ({ key, event }))
      .sort(({ event: a }, { event: b }) => a.pid - b.pid || a.tid - b.tid)
      .map(({ key, event: { pid, tid } }) => ({ key, name: `${processes.get(pid) || "process " + pid}, ${threads.get(key) || "thread " + tid}` }));
  }
  const stageInks = { queue: "grey", build: "vermillion", upload: "orange", submit: "purple", device: "blue", readback: "green" };
  // A stage of the executor by its name; another span by its category, or by its name where it has none.
  const groupOf = ({ name, cat }) => (cat === "stage" || !cat ? name : cat);
  // The length of the spans' union; they may overlap within a lane.
  const covered = (spans) => {
    let end = 0;
    return sum(spans.map(({ ts, dur }) => {
      const length = Math.max(0, ts + dur - Math.max(ts, end));
      end = Math.max(end, ts + dur);
      return length;
    }));
  };

  const lanesSection = ({ label, content }, index) => {
    const id = `lanes-${index + 1}`;
    const lanes = lanesOf(content);
    const rowOf = new Map(lanes.map(({ key }, row) => [key, row]));
    const spans = spansOf(content);
    const end = spans.reduce((last, { ts, dur }) => Math.max(last, ts + dur), 0);
    const jobs = spans.filter(({ cat }) => cat === "job");  // a job holds its stages, which its lane was busy with
    const stages = spans.filter(({ cat }) => cat !== "job");
    const groups = unique(stages.map(groupOf));
    const series = [...groupBy(stages.slice(0, most.spans), groupOf)].map(([group, of]) => ({
      name: group, ink: stageInks[group] || "sky",
      points: of.map((span) => [span.ts / 1e3, (span.ts + span.dur) / 1e3, rowOf.get(laneKey(span)), `${span.name === group ? "" : span.name + ", "}${legible(span.dur / 1e3)} ms`]),
    }));
    const rows = lanes.map(({ key, name }) => {
      const mine = (span) => laneKey(span) === key;
      const busy = groupBy(stages.filter(mine), groupOf);
      const computing = stages.filter((span) => mine(span) && span.name === "device");
      return [name, String(jobs.filter(mine).length), ...groups.map((group) => (busy.has(group) ? legible(sum(busy.get(group).map(({ dur }) => dur)) / 1e3) : dash)),
        computing.length ? percent(covered(computing), end) : dash];
    });
    return {
      id, title: `Pipeline lanes (${label})`, lead: `${counted(jobs.length, "job")} in ${counted(lanes.length, "lane")}, ${duration(end / 1e3)}.`,
      figures: [figure(id + "-chart", "Lanes over time",
        "One row a slot of the executor, or another thread of the trace; what overlaps from row to row ran at the same time. The file itself opens in Perfetto, which shows every span."
        + (stages.length > most.spans ? ` The first ${most.spans} of ${stages.length} spans are drawn; the table counts all.` : ""),
        ["Lane", ">Jobs", ...groups.map((group) => `>${group}, ms`), ">Computing"], rows,
        chart("lanes", axis("time since the first span, ms", "ms"), lanes.map(({ name }) => name), series))],
    };
  };
  const traces = () => of("trace").filter(({ content }) => spansOf(content).length).map(lanesSection);

  // --- sources

  const kindWords = { run: "a run", bench: "a bench", tuning: "a tuning database", cache: "a program cache", trace: "a trace" };
  const sources = () => [{
    id: "sources", title: "Sources", lead: "What this page was made from. The page is one file and fetches nothing.",
    figures: [figure("files", "Files", "", ["File", "What it is", ">Size", "SHA-256"], report.sources.map(({ name, kind, bytes, digest }) => [
      name, kindWords[kind], digest ? size(bytes) : dash, digest ? digest.slice(0, 16) + "…" : dash]))],
  }];

  return [overview, bench, start, cache, devices, roofline, tuning, traces, sources].flatMap((section) => section());
};
