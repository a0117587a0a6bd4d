/* SPDX-License-Identifier: MIT */
/*
 * Draws the plots over time from the JSON in #data into the .job sections that are already there. No library, no
 * network. Everything that is text in the data stays text: only textContent and attributes are set.
 */
(function () {
	"use strict";

	var SVG = "http://www.w3.org/2000/svg";
	var data = JSON.parse(document.getElementById("data").textContent);
	var dark = window.matchMedia("(prefers-color-scheme: dark)");

	/* Okabe and Ito's palette first (told apart with any colour vision), then dashed lines of the same. */
	var LINES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a67c00", "#3d6fd9", "#7a7a7a"];
	var LINES_DARK = ["#56b4e9", "#ff8a3d", "#2fc79a", "#e6a3c8", "#f0e442", "#8fb0ff", "#bdbdbd"];
	var DASHES = ["", "6 3", "2 3", "9 3 2 3"];
	var NODES = ["#4477aa", "#ee8866", "#44aa88", "#bbaa33", "#aa4499", "#77aadd", "#993333", "#7f7f7f"];

	function colour(i) {
		return (dark.matches ? LINES_DARK : LINES)[i % LINES.length];
	}

	function dash(i) {
		return DASHES[Math.floor(i / LINES.length) % DASHES.length];
	}

	/* More nodes than colours: lighter shades of the same. */
	function nodeColour(i) {
		var lighter = Math.min(Math.floor(i / NODES.length) * 25, 75);

		return "color-mix(in srgb, " + NODES[i % NODES.length] + " " + (100 - lighter) + "%, white)";
	}

	function element(name, attributes, parent) {
		var svg = /^(svg|g|path|line|rect|text|circle|title)$/.test(name);
		var e = svg ? document.createElementNS(SVG, name) : document.createElement(name);

		Object.keys(attributes || {}).forEach(function (key) {
			if (key === "text")
				e.textContent = attributes[key];
			else
				e.setAttribute(key, attributes[key]);
		});
		if (parent)
			parent.appendChild(e);
		return e;
	}

	/* 1234567 -> "1.23M"; what is below a thousand keeps three digits. */
	function short(value) {
		var units = ["", "k", "M", "G", "T", "P"], u = 0, v = Math.abs(value);

		while (v >= 999.5 && u < units.length - 1) {
			v /= 1000;
			u++;
		}
		return (value < 0 ? "-" : "") + String(Number(v.toPrecision(3))) + units[u];
	}

	function bytes(pages) {
		var units = ["KiB", "MiB", "GiB", "TiB", "PiB"], u = 0, v = pages * 4;

		while (v >= 1024 && u < units.length - 1) {
			v /= 1024;
			u++;
		}
		return pages ? String(Number(v.toPrecision(3))) + " " + units[u] : "0";
	}

	/* Round steps, about `wanted` of them, from 0 to at least `top`. */
	function ticks(top, wanted) {
		var raw = top / wanted, power = Math.pow(10, Math.floor(Math.log10(raw)));
		var step = [1, 2, 2.5, 5, 10].map(function (m) { return m * power; }).find(function (s) { return s >= raw * 0.999; });
		var list = [], i;

		for (i = 0; i * step <= top * 1.0001; i++)
			list.push(Number((i * step).toPrecision(12)));
		return list;
	}

	/* Ticks of a memory axis are whole numbers of a binary unit; `top` in pages. */
	function byteTicks(top, wanted) {
		var unit = 1;

		while (top / unit >= 1024 * 0.9)
			unit *= 1024;
		if (top / unit < 2 && unit > 1)
			unit /= 1024;
		var scaled = ticks(top / unit, wanted);

		if (unit > 1 && top / unit > 16) { /* powers of two read better here: 256, 512, 768 MiB */
			var step = Math.pow(2, Math.ceil(Math.log2(top / unit / wanted)));

			scaled = [];
			for (var v = 0; v <= top / unit * 1.0001; v += step)
				scaled.push(v);
		}
		return scaled.map(function (v) { return v * unit; });
	}

	function rate(values, times) {
		return values.map(function (v, i) {
			var span = times[i] - (i ? times[i - 1] : 0);

			return span > 0 ? (v - (i ? values[i - 1] : 0)) / span : null;
		});
	}

	function maximum(values) {
		return values.reduce(function (m, v) { return v !== null && v > m ? v : m; }, 0);
	}

	/* What can be drawn of a run, one entry per line chart. */
	var CHARTS = [
		{title: "Local share of the bytes accessed", unit: "local / all", top: 1,
			of: function (run) { return run.local; }, format: function (v) { return (100 * v).toFixed(1) + " %"; },
			axis: function (v) { return Math.round(100 * v) + " %"; }},
		{title: "Hint faults", unit: "faults / s", of: function (run) { return rate(run.faults, run.t); }},
		{title: "Scan period, mean over tasks", unit: "ms", of: function (run) { return run.period; }},
		{title: "Pages migrated", unit: "4 KiB pages / s", of: function (run) { return rate(run.moved, run.t); }}
	];

	/* ---- a plot: frame, axes, cross-hair; `draw` draws, and says whether there was anything ---- */

	function Plot(parent, title, unit, height, draw, readout) {
		var self = this;

		this.height = height;
		this.draw = draw;
		this.readout = readout;
		this.unit = unit;
		this.title = title;
		this.box = element("div", {"class": "plot"}, parent);
		this.heading = element("h3", {text: title}, this.box);
		this.svg = element("svg", {role: "img", tabindex: "0", "aria-label": title + ", " + unit +
			" over time in seconds. Arrow keys move the readout; the figures are in the table below."}, this.box);
		this.tip = element("div", {"class": "tip", hidden: ""}, this.box);
		this.tip.hidden = true;
		this.at = -1;
		this.svg.addEventListener("pointermove", function (event) {
			var r = self.svg.getBoundingClientRect();

			if (r.width > 0)
				self.point(self.timeAt((event.clientX - r.left) * self.width / r.width));
		});
		this.svg.addEventListener("pointerleave", function () { self.leave(); });
		this.svg.addEventListener("blur", function () { self.leave(); });
		this.svg.addEventListener("keydown", function (event) { self.key(event); });
	}

	Plot.prototype.x = function (t) {
		return this.left + (this.width - this.left - this.right) * t / this.end;
	};

	Plot.prototype.y = function (v) {
		return this.bottom - (this.bottom - this.topEdge) * v / this.top;
	};

	Plot.prototype.timeAt = function (x) {
		var t = (x - this.left) / (this.width - this.left - this.right) * this.end;

		return Math.max(0, Math.min(this.end, t));
	};

	Plot.prototype.axes = function (top, format, byBytes) {
		var self = this, small = this.width < 380;
		var marks = byBytes ? byteTicks(top, 4) : ticks(top, 4);

		this.left = 8 + 6.6 * Math.max.apply(null, marks.map(function (v) { return format(v).length; }));
		marks.forEach(function (v) {
			var y = Math.round(self.y(v)) + 0.5;

			element("line", {"class": "frame", x1: self.left, x2: self.width - self.right, y1: y, y2: y}, self.svg);
			element("text", {x: self.left - 5, y: y + 4, "text-anchor": "end", text: format(v)}, self.svg);
		});
		ticks(this.end, small ? 4 : 6).forEach(function (t) {
			var x = Math.round(self.x(t)) + 0.5;

			element("line", {"class": "frame", x1: x, x2: x, y1: self.bottom, y2: self.bottom + 4}, self.svg);
			element("text", {x: x, y: self.bottom + 16, "text-anchor": "middle", text: short(t)}, self.svg);
		});
		element("text", {x: this.width - this.right, y: this.bottom + 30, "text-anchor": "end", text: "time in s"}, this.svg);
		element("text", {x: 0, y: 11, text: this.unit}, this.svg);
	};

	/* `end`: last second on the time axis; `top`: highest value. */
	Plot.prototype.render = function (end, top) {
		this.width = Math.max(220, this.box.clientWidth || 480);
		this.end = end > 0 ? end : 1;
		this.top = top > 0 ? top : 1;
		this.right = 14;
		this.topEdge = 24;
		this.bottom = this.height - 34;
		this.svg.setAttribute("viewBox", "0 0 " + this.width + " " + this.height);
		this.svg.setAttribute("height", this.height);
		while (this.svg.firstChild)
			this.svg.removeChild(this.svg.firstChild);
		if (!this.draw(this))
			element("text", {x: (this.left + this.width) / 2, y: this.height / 2, "text-anchor": "middle",
				text: "no values"}, this.svg);
		this.cross = element("line", {"class": "cross", x1: 0, x2: 0, y1: this.topEdge, y2: this.bottom,
			visibility: "hidden"}, this.svg);
		this.leave();
	};

	Plot.prototype.leave = function () {
		this.tip.hidden = true;
		this.at = -1;
		if (this.cross)
			this.cross.setAttribute("visibility", "hidden");
	};

	Plot.prototype.point = function (t) {
		var rows = this.readout(t), x = this.x(t), table, self = this;

		this.at = t;
		this.cross.setAttribute("x1", x);
		this.cross.setAttribute("x2", x);
		this.cross.setAttribute("visibility", "visible");
		this.tip.textContent = "";
		element("div", {text: t.toPrecision(4).replace(/\.?0+$/, "") + " s", "class": "soft"}, this.tip);
		table = element("tbody", {}, element("table", {}, this.tip));
		rows.forEach(function (row) {
			var tr = element("tr", {}, table), mark = element("td", {}, tr);

			self.swatch(mark, row);
			element("th", {text: row.name, scope: "row"}, tr);
			element("td", {text: row.value}, tr);
		});
		this.tip.hidden = rows.length === 0;
		this.tip.style.top = this.heading.offsetHeight + this.topEdge + "px";
		if (x > this.width / 2) {
			this.tip.style.left = "auto";
			this.tip.style.right = this.width - x + 12 + "px";
		} else {
			this.tip.style.right = "auto";
			this.tip.style.left = x + 12 + "px";
		}
	};

	Plot.prototype.swatch = function (parent, row) {
		var svg = element("svg", {width: 18, height: 10, "aria-hidden": "true"}, parent);

		if (row.dash === undefined)
			element("rect", {width: 10, height: 10, x: 4, style: "fill:" + row.colour}, svg);
		else
			element("line", {x1: 0, x2: 18, y1: 5, y2: 5, "stroke-width": 2, stroke: row.colour, "stroke-dasharray": row.dash}, svg);
	};

	Plot.prototype.key = function (event) {
		var step = this.end / 60;

		if (event.key === "Escape")
			this.leave();
		else if (event.key === "ArrowRight")
			this.point(Math.min(this.end, this.at < 0 ? 0 : this.at + step));
		else if (event.key === "ArrowLeft")
			this.point(Math.max(0, this.at < 0 ? this.end : this.at - step));
		else
			return;
		event.preventDefault();
	};

	/* ---- drawings ---- */

	/* The last sample at or before t, or the first; -1 past the end of a run. */
	function sampleAt(run, t) {
		var low = 0, high = run.t.length - 1, middle;

		if (high < 0 || t > run.t[high] * 1.02 + 1e-9)
			return -1;
		while (low < high) {
			middle = (low + high) >> 1;
			if (run.t[middle] < t)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	/* A line with gaps where there is no value; a sample alone is a dot. Returns whether there was any. */
	function drawLine(plot, times, values, index) {
		var path = "", pen = false, any = false, alone;

		values.forEach(function (v, i) {
			if (v === null) {
				pen = false;
				return;
			}
			var p = plot.x(times[i]).toFixed(1) + " " + plot.y(v).toFixed(1);
			var next = i + 1 < values.length && values[i + 1] !== null;

			alone = !pen && !next;
			if (alone)
				element("circle", {r: 2.5, cx: plot.x(times[i]), cy: plot.y(v), fill: colour(index)}, plot.svg);
			else
				path += (pen ? "L" : "M") + p;
			pen = any = true;
		});
		if (path)
			element("path", {"class": "line", d: path, stroke: colour(index), "stroke-dasharray": dash(index)}, plot.svg);
		return any;
	}

	/* Pages per node, one band over the other; the first sample also stands for the time before it. */
	function drawStack(plot, run, nodes) {
		var below = run.t.map(function () { return 0; });

		run.pages.forEach(function (pages, n) {
			var top = pages.map(function (p, i) { return below[i] + p; });
			var points = function (values) {
				var list = run.t.map(function (t, i) { return plot.x(t).toFixed(1) + " " + plot.y(values[i]).toFixed(1); });

				list.unshift(plot.x(0).toFixed(1) + " " + plot.y(values[0]).toFixed(1));
				return list;
			};

			if (run.t.length)
				element("path", {d: "M" + points(top).join("L") + "L" + points(below).reverse().join("L") + "Z",
					style: "fill:" + nodeColour(nodes.indexOf(run.nodes[n]))}, plot.svg);
			below = top;
		});
		return stackTop(run) > 0;
	}

	function stackTop(run) {
		return maximum(run.t.map(function (t, i) {
			return run.pages.reduce(function (sum, pages) { return sum + pages[i]; }, 0);
		}));
	}

	/* ---- one job ---- */

	function Job(section, index) {
		var self = this;

		this.section = section;
		this.runs = data.runs.filter(function (run) { return run.job === index; });
		this.runs.forEach(function (run) { run.shown = true; });
		this.nodes = [];
		this.runs.forEach(function (run) {
			run.nodes.forEach(function (id) {
				if (self.nodes.indexOf(id) < 0)
					self.nodes.push(id);
			});
		});
		this.nodes.sort(function (a, b) { return a - b; });
		this.legend();
		this.stacks();
		this.lines();
		this.tables();
		this.render();
	}

	Job.prototype.legend = function () {
		var self = this, box = element("div", {"class": "legend", role: "group", "aria-label": "Systems shown"}, this.section);

		this.marks = [];
		this.runs.forEach(function (run) {
			var button = element("button", {type: "button", "aria-pressed": "true"}, box);
			var svg = element("svg", {width: 24, height: 10, "aria-hidden": "true"}, button);

			self.marks.push(element("line", {x1: 0, x2: 24, y1: 5, y2: 5, "stroke-width": 2.5, "stroke-dasharray": dash(run.system)}, svg));
			element("span", {text: data.systems[run.system]}, button);
			button.addEventListener("click", function () {
				run.shown = !run.shown;
				button.setAttribute("aria-pressed", String(run.shown));
				self.render();
			});
		});
	};

	Job.prototype.stacks = function () {
		var self = this, nodes, grid;

		element("h3", {text: "Pages per node"}, this.section);
		nodes = element("div", {"class": "nodes"}, this.section);
		this.nodes.forEach(function (id, i) {
			element("span", {text: "node " + id}, nodes).style.setProperty("--node", nodeColour(i));
		});
		grid = element("div", {"class": "grid small"}, this.section);
		this.runs.forEach(function (run) {
			run.stack = new Plot(grid, data.systems[run.system], "memory", 190, function (plot) {
				plot.left = 60;
				plot.axes(plot.top, bytes, true);
				return drawStack(plot, run, self.nodes);
			}, function (t) {
				var i = sampleAt(run, t);

				return i < 0 ? [] : run.nodes.map(function (id, n) {
					return {name: "node " + id, value: bytes(run.pages[n][i]),
						colour: nodeColour(self.nodes.indexOf(id))};
				}).reverse();
			});
		});
	};

	Job.prototype.lines = function () {
		var self = this, grid = element("div", {"class": "grid"}, this.section);

		this.plots = CHARTS.map(function (chart) {
			var format = chart.format || short;

			self.runs.forEach(function (run) {
				run.lines = run.lines || [];
				run.lines.push(chart.of(run));
			});
			return new Plot(grid, chart.title, chart.unit, 230, function (plot) {
				plot.left = 60;
				plot.axes(plot.top, chart.axis || short, false);
				return self.visible().filter(function (run) {
					return drawLine(plot, run.t, run.lines[CHARTS.indexOf(chart)], run.system);
				}).length > 0;
			}, function (t) {
				return self.visible().map(function (run) {
					var i = sampleAt(run, t), v = i < 0 ? null : run.lines[CHARTS.indexOf(chart)][i];

					return {name: data.systems[run.system], colour: colour(run.system), dash: dash(run.system),
						value: i < 0 ? "ended" : v === null ? "-" : format(v)};
				});
			});
		});
	};

	Job.prototype.visible = function () {
		return this.runs.filter(function (run) { return run.shown; });
	};

	/* The figures behind the plots, made when they are asked for. */
	Job.prototype.tables = function () {
		var self = this, all = element("details", {"class": "figures"}, this.section);

		element("summary", {text: "The figures behind these plots"}, all);
		this.runs.forEach(function (run) {
			var details = element("details", {}, all);

			element("summary", {text: data.systems[run.system] + ", " + run.t.length + " samples"}, details);
			details.addEventListener("toggle", function () {
				if (details.open && details.childElementCount === 1)
					self.table(details, run);
			});
		});
	};

	Job.prototype.table = function (details, run) {
		var box = element("div", {"class": "scroll", tabindex: "0", role: "region", "aria-label": "Figures"}, details);
		var table = element("table", {}, box), head = element("tr", {}, element("thead", {}, table));
		var body = element("tbody", {}, table);

		["time, s"].concat(CHARTS.map(function (c) { return c.title + ", " + c.unit; }), run.nodes.map(function (id) {
			return "pages on node " + id;
		})).forEach(function (text) { element("th", {text: text, scope: "col"}, head); });
		run.t.forEach(function (t, i) {
			var row = element("tr", {}, body);

			element("th", {text: String(t), scope: "row"}, row);
			run.lines.forEach(function (values) {
				element("td", {text: values[i] === null ? "-" : String(Number(values[i].toPrecision(6)))}, row);
			});
			run.pages.forEach(function (pages) { element("td", {text: String(pages[i])}, row); });
		});
	};

	Job.prototype.render = function () {
		var self = this, visible = this.visible();
		var end = maximum(visible.map(function (run) { return run.t.length ? run.t[run.t.length - 1] : 0; }));
		var stack = maximum(this.runs.map(stackTop));

		this.marks.forEach(function (mark, i) { mark.setAttribute("stroke", colour(self.runs[i].system)); });
		this.runs.forEach(function (run) {
			run.stack.box.hidden = !run.shown;
			if (run.shown)
				run.stack.render(end, stack);
		});
		this.plots.forEach(function (plot, c) {
			plot.render(end, CHARTS[c].top || 1.05 * maximum(visible.map(function (run) { return maximum(run.lines[c]); })));
		});
	};

	/* ---- the page ---- */

	var jobs = Array.prototype.map.call(document.querySelectorAll("section.job"), function (section, i) {
		return new Job(section, i);
	});
	var pending = 0;

	function renderAll() {
		jobs.forEach(function (job) { job.render(); });
	}

	window.addEventListener("resize", function () {
		window.clearTimeout(pending);
		pending = window.setTimeout(renderAll, 100);
	});
	window.addEventListener("beforeprint", renderAll);
	dark.addEventListener("change", renderAll);
}());
