#include "page/render/html_page.hpp"

#include "page/render/html.hpp"

namespace kiln::host::page {
namespace {

constexpr std::size_t least_part = 12;          // characters of a word's line
constexpr std::size_t most_rows_unfolded = 12;  // of a table under a chart

std::string element(std::string_view tag, std::string_view text) {
  if (text.empty()) return {};
  return "<" + std::string(tag) + ">" + escaped(text) + "</" + std::string(tag) + ">\n";
}

// A variant's name or a path is one long word: its line may break after each of its parts, and nowhere else.
std::string cell_html(std::string_view text) {
  std::string html;
  std::size_t length = 0;  // of the word so far
  for (const char c : escaped(text)) {
    html += c;
    length = c == ' ' ? 0 : length + 1;
    if (length >= least_part && std::string_view(",:/_=").find(c) != std::string_view::npos) html += "<wbr>";
  }
  return html;
}

std::string table_html(const Table& table, std::string_view title) {
  // Wider than a phone: it scrolls by itself, with the keyboard too.
  std::string html = "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Table: " + escaped(title) +
                     "\">\n<table>\n<thead><tr>";
  for (const auto& column : table.columns) {
    html += column.align == Align::right ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">";
    html += escaped(column.title) + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size() && i < table.columns.size(); ++i) {
      const std::string text = cell_html(row[i]);
      if (i == 0) {
        html += "<th scope=\"row\">" + text + "</th>";
      } else {
        html += (table.columns[i].align == Align::right ? "<td class=\"n\">" : "<td>") + text + "</td>";
      }
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n</div>\n";
}

std::string figure_html(const Figure& figure) {
  const std::string id = escaped(figure.id);
  std::string html = "<figure id=\"" + id + "\" aria-labelledby=\"" + id + "-title\">\n<figcaption>\n<h3 id=\"" + id +
                     "-title\">" + escaped(figure.title) + "</h3>\n" + element("p", figure.caption) + "</figcaption>\n";
  if (figure.chart) {
    html += "<div class=\"chart\" data-chart=\"" + id + "\"></div>\n";
    const bool unfolded = figure.table.rows.size() <= most_rows_unfolded;
    html += std::string(unfolded ? "<details open>" : "<details>") + "<summary>The figures as a table</summary>\n" +
            table_html(figure.table, figure.title) + "</details>\n";
  } else {
    html += table_html(figure.table, figure.title);
  }
  return html + "</figure>\n";
}

std::string tiles_html(const std::vector<Tile>& tiles) {
  if (tiles.empty()) return {};
  std::string html = "<dl class=\"tiles\">\n";
  for (const Tile& tile : tiles) {
    html += "<div><dt>" + escaped(tile.label) + "</dt><dd><span class=\"value\">" + escaped(tile.value) +
            "</span><span class=\"note\">" + escaped(tile.note) + "</span></dd></div>\n";
  }
  return html + "</dl>\n";
}

std::string section_html(const Section& section) {
  const std::string id = escaped(section.id);
  std::string html = "<section id=\"" + id + "\" aria-labelledby=\"" + id + "-title\">\n<h2 id=\"" + id + "-title\">" +
                     escaped(section.title) + "</h2>\n";
  if (!section.lead.empty()) html += "<p class=\"lead\">" + escaped(section.lead) + "</p>\n";
  html += tiles_html(section.tiles);
  for (const Figure& figure : section.figures) html += figure_html(figure);
  return html + "</section>\n";
}

std::string contents_html(const Page& page) {
  std::string html = "<nav aria-label=\"Sections\">\n<ul>\n";
  for (const Section& section : page.sections) {
    html += "<li><a href=\"#" + escaped(section.id) + "\">" + escaped(section.title) + "</a></li>\n";
  }
  return html + "</ul>\n</nav>\n";
}

Json charts_of(const Page& page) {
  Json charts = Json::object();
  for (const Section& section : page.sections) {
    for (const Figure& figure : section.figures) {
      if (!figure.chart) continue;
      Json chart = *figure.chart;
      chart["title"] = figure.title;
      charts[figure.id] = std::move(chart);
    }
  }
  return charts;
}

std::string policy(const Assets& assets, std::string_view style) {
  std::string text = "default-src 'none'; style-src " + policy_hash(style) + "; script-src";
  for (const std::string& script : assets.scripts) text += " " + policy_hash(script);
  return text + "; base-uri 'none'; form-action 'none'";
}

}  // namespace

std::string html_page(const Page& page, const Assets& assets) {
  const std::string title = escaped(page.title);
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" + title +
      "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"" +
      policy(assets, assets.style) + "\">\n<style>" + assets.style + "</style>\n</head>\n<body>\n" +
      "<a class=\"skip\" href=\"#main\">Skip to the figures</a>\n<header>\n<p class=\"brand\">Kiln</p>\n<h1>" + title +
      "</h1>\n" + element("p", page.made) + "</header>\n" + contents_html(page) +
      "<main id=\"main\" tabindex=\"-1\">\n" +
      "<noscript><p>Charts are drawn by a script, which is switched off here: every figure stands in the tables.</p>"
      "</noscript>\n";
  for (const Section& section : page.sections) html += section_html(section);
  html += "</main>\n<script type=\"application/json\" id=\"charts\">" + script_json(charts_of(page)) + "</script>\n";
  for (const std::string& script : assets.scripts) html += "<script>" + script + "</script>\n";
  return html + "</body>\n</html>\n";
}

}  // namespace kiln::host::page
