// The report as a page: see report.h. Figures are SVG drawn here.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "common/counted.h"
#include "tools/display/table.h"
#include "tools/profile/report.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostRows = 50;
constexpr size_t kMostBars = 256;
constexpr size_t kMostTiles = 128;  // of a heat map's side; ranks beyond share tiles
constexpr double kMapSide = 560;

constexpr char kStyle[] = R"(
:root{color-scheme:light dark;--line:#8885;--ferry:#4a90d9;--wait:#d9534f;--poll:#e6a23c}
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}
table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid var(--line);
text-align:right;white-space:nowrap}td:first-child,th:first-child{text-align:left}
.wide{overflow-x:auto}.advice li{margin:.6em 0}.cause{font-weight:600}.remedy{opacity:.8}
.key i{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 1em;vertical-align:-.1em}
svg text{font:11px system-ui,sans-serif;fill:currentColor}
)";

template <typename... Values>
std::string Format(const char* format, Values... values) {
  char text[512];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Row(const std::vector<std::string>& cells, const char* tag) {
  std::string row = "<tr>";
  for (const std::string& cell : cells) {
    row += std::string("<") + tag + ">" + Escaped(cell) + "</" + tag + ">";
  }
  return row + "</tr>\n";
}

class Rows {
 public:
  explicit Rows(const std::vector<std::string>& titles) : text_(Row(titles, "th")) {}
  void Add(const std::vector<std::string>& cells) {
    is_empty_ = false;
    text_ += Row(cells, "td");
  }
  std::string Section(const std::string& title) const {
    return is_empty_
               ? ""
               : "<h2>" + title + "</h2>\n<div class=wide><table>\n" + text_ + "</table></div>\n";
  }

 private:
  std::string text_;
  bool is_empty_ = true;
};

double Part(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

std::string Percent(uint64_t part, uint64_t whole) {
  return Format("%.1f %%", 100 * Part(part, whole));
}

// A bar for each rank: what it did with its time, as parts of the longest life.
std::string Bars(const Report& report) {
  constexpr double kLeft = 60;
  constexpr double kWidth = 700;
  const size_t count = std::min(report.ranks.size(), kMostBars);
  const double height = count > 64 ? 8 : 16;
  uint64_t longest = 0;
  for (const RankLine& line : report.ranks) {
    longest = std::max(longest, line.life_ns);
  }
  std::string svg =
      Format("<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" role=img>\n", kLeft + kWidth + 10,
             static_cast<double>(count) * height + 4, kLeft + kWidth + 10);
  for (size_t i = 0; i < count; ++i) {
    const RankLine& line = report.ranks[i];
    const double y = static_cast<double>(i) * height;
    const double life = kWidth * Part(line.life_ns, longest);
    const double waits = kWidth * Part(line.waited_ns, longest);
    const double polls = kWidth * Part(line.polled_ns, longest);
    const double work =
        kWidth * Part(line.ferry_ns - std::min(line.ferry_ns, line.waited_ns), longest);
    svg += Format("<g><title>rank %u: %s, in Ferry %s, waits %s</title>", line.rank,
                  TimeWords(line.life_ns).c_str(), TimeWords(line.ferry_ns).c_str(),
                  TimeWords(line.waited_ns).c_str());
    double x = kLeft;
    for (const auto& [width, colour] :
         {std::pair(waits, "var(--wait)"), std::pair(work, "var(--ferry)"),
          std::pair(polls, "var(--poll)"),
          std::pair(std::max(0.0, life - waits - work - polls), "#8883")}) {
      svg += Format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>", x,
                    y + 1, width, height - 2, colour);
      x += width;
    }
    if (height > 10 || i % 8 == 0) {
      svg += Format("<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%u</text>", kLeft - 6,
                    y + height - 4, line.rank);
    }
    svg += "</g>\n";
  }
  return svg + "</svg>\n";
}

// Bytes from rank to rank, darker for more; of many ranks, neighbours share a tile.
std::string HeatMap(const Report& report) {
  const size_t size = report.traffic.size();
  if (size == 0) {
    return "";
  }
  const size_t each = (size + kMostTiles - 1) / kMostTiles;
  const size_t tiles = (size + each - 1) / each;
  std::vector<std::vector<uint64_t>> sums(tiles, std::vector<uint64_t>(tiles, 0));
  uint64_t most = 0;
  for (size_t from = 0; from < size; ++from) {
    for (size_t to = 0; to < size; ++to) {
      uint64_t& sum = sums[from / each][to / each];
      sum += report.traffic[from][to];
      most = std::max(most, sum);
    }
  }
  if (most == 0) {
    return "";
  }
  const double side = kMapSide / static_cast<double>(tiles);
  std::string svg = Format("<svg viewBox=\"-40 -24 %.0f %.0f\" width=\"%.0f\" role=img>\n",
                           kMapSide + 50, kMapSide + 34, kMapSide + 50);
  svg += Format("<rect width=\"%.0f\" height=\"%.0f\" fill=\"none\" stroke=\"var(--line)\"/>\n",
                kMapSide, kMapSide);
  svg += "<text x=\"0\" y=\"-8\">to rank</text><text x=\"-36\" y=\"10\">from</text>\n";
  for (size_t from = 0; from < tiles; ++from) {
    for (size_t to = 0; to < tiles; ++to) {
      const uint64_t bytes = sums[from][to];
      if (bytes == 0) {
        continue;
      }
      const double shade =
          std::log1p(static_cast<double>(bytes)) / std::log1p(static_cast<double>(most));
      svg += Format(
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#4a90d9\" "
          "fill-opacity=\"%.2f\"><title>rank %zu to rank %zu: %s</title></rect>\n",
          static_cast<double>(to) * side, static_cast<double>(from) * side, side, side,
          0.08 + 0.92 * shade, from * each, to * each, BytesText(bytes).c_str());
    }
  }
  const size_t step = std::max<size_t>(1, tiles / 8);
  for (size_t i = 0; i < tiles; i += step) {
    svg += Format("<text x=\"-6\" y=\"%.1f\" text-anchor=\"end\">%zu</text>",
                  (static_cast<double>(i) + 0.5) * side + 4, i * each);
  }
  return "<h2>Bytes from rank to rank</h2>\n" + svg + "</svg>\n<p>Darkest: " + BytesText(most) +
         " (shades are logarithmic).</p>\n";
}

std::string Sizes(const Report& report) {
  const uint64_t most = *std::max_element(report.sent_sizes.begin(), report.sent_sizes.end());
  if (most == 0) {
    return "";
  }
  std::string svg;
  size_t shown = 0;
  constexpr double kRow = 16;
  for (size_t power = 0; power < report.sent_sizes.size(); ++power) {
    const uint64_t count = report.sent_sizes[power];
    if (count == 0) {
      continue;
    }
    const double y = static_cast<double>(shown++) * kRow;
    const std::string from = power == 0 ? "empty" : BytesText(uint64_t{1} << (power - 1));
    svg += Format(
        "<text x=\"84\" y=\"%.0f\" text-anchor=\"end\">%s</text><rect x=\"90\" "
        "y=\"%.0f\" width=\"%.1f\" height=\"%.0f\" fill=\"var(--ferry)\"/><text "
        "x=\"%.1f\" y=\"%.0f\">%llu</text>\n",
        y + 12, from.c_str(), y + 2, 500 * Part(count, most), kRow - 4,
        96 + 500 * Part(count, most), y + 12, static_cast<unsigned long long>(count));
  }
  return "<h2>Messages by size (from that size on)</h2>\n" +
         Format("<svg viewBox=\"0 0 700 %.0f\" width=\"700\" role=img>\n",
                static_cast<double>(shown) * kRow + 4) +
         svg + "</svg>\n";
}

std::string AdviceList(const Report& report) {
  std::string text = "<h2>What to look at</h2>\n";
  if (report.advice.empty()) {
    return text + (report.measured == 0 ? "<p>No rank was measured.</p>\n"
                                        : "<p>Nothing stands out.</p>\n");
  }
  text += "<ol class=advice>\n";
  for (const Advice& advice : report.advice) {
    text += "<li><span class=cause>" + Escaped(advice.cause) +
            "</span>: " + Escaped(advice.sentence) + ".<br><span class=remedy>" +
            Escaped(advice.remedy) + ".</span></li>\n";
  }
  return text + "</ol>\n";
}

std::string Tables(const Report& report) {
  Rows calls({"call", "on", "count", "bytes", "time", "of all", "waits", "mean", "longest"});
  for (size_t i = 0; i < std::min(report.calls.size(), kMostRows); ++i) {
    const CallLine& line = report.calls[i];
    calls.Add({CallWords(line.name, line.inner), line.group, std::to_string(line.count),
               BytesText(line.bytes), TimeWords(line.time_ns),
               Percent(line.time_ns, report.life_ns), TimeWords(line.waited_ns),
               TimeWords(line.time_ns / std::max<uint64_t>(line.count, 1)),
               TimeWords(line.longest_ns) + " (rank " + std::to_string(line.longest_rank) + ")"});
  }
  Rows meetings(
      {"collective", "on", "compared", "came last", "so often", "lost by it", "lost in all"});
  for (size_t i = 0; i < std::min(report.meetings.size(), kMostRows); ++i) {
    const MeetingLine& line = report.meetings[i];
    meetings.Add({CallWords(line.name, shm::CallName::kNone), line.group,
                  std::to_string(line.compared), "rank " + std::to_string(line.last_rank),
                  std::to_string(line.last_times), TimeWords(line.last_lost_ns),
                  TimeWords(line.lost_ns)});
  }
  Rows late({"waited", "for", "times", "time"});
  for (size_t i = 0; i < std::min(report.late.size(), kMostRows); ++i) {
    const LatePair& pair = report.late[i];
    late.Add({"rank " + std::to_string(pair.waiter),
              "rank " + std::to_string(pair.late) + (pair.is_sender ? " to send" : " to receive"),
              std::to_string(pair.waits), TimeWords(pair.waited_ns)});
  }
  Rows paths({"path", "messages", "bytes"});
  for (const PathLine& line : report.paths) {
    paths.Add({line.path, std::to_string(line.messages), BytesText(line.bytes)});
  }
  Rows files(
      {"file", "opens", "reads", "read", "writes", "written", "calls", "time", "waits", "longest"});
  for (size_t i = 0; i < std::min(report.files.size(), kMostRows); ++i) {
    const FileLine& line = report.files[i];
    files.Add({line.name, std::to_string(line.opens), std::to_string(line.reads),
               BytesText(line.read_bytes), std::to_string(line.writes),
               BytesText(line.written_bytes), std::to_string(line.calls), TimeWords(line.time_ns),
               TimeWords(line.waited_ns),
               TimeWords(line.longest_ns) + " (rank " + std::to_string(line.longest_rank) + ")"});
  }
  Rows peers({"call", "rank", "peer", "count", "bytes", "time", "waits", "longest"});
  for (size_t i = 0; i < std::min(report.peers.size(), kMostRows); ++i) {
    const PeerLine& line = report.peers[i];
    peers.Add({CallWords(line.name, shm::CallName::kNone), std::to_string(line.rank),
               std::to_string(line.peer), std::to_string(line.count), BytesText(line.bytes),
               TimeWords(line.time_ns), TimeWords(line.waited_ns), TimeWords(line.longest_ns)});
  }
  return calls.Section("Calls, all ranks together") +
         meetings.Section("Collectives: who came last") +
         late.Section("Messages: who waited for whom") + paths.Section("Paths of messages") +
         files.Section("Files, all ranks together") + peers.Section("Calls by rank and peer");
}

std::string Notes(const JobProfile& job, const Report& report) {
  Rows ranks({"rank", "note"});
  for (const RankLine& line : report.ranks) {
    if (!line.note.empty()) {
      ranks.Add({std::to_string(line.rank), line.note});
    }
  }
  Rows nodes({"node", "ferryd's processor time", ""});
  for (const NodeFacts& node : job.nodes) {
    nodes.Add({node.name, TimeWords(node.cpu_ns), node.trouble});
  }
  return nodes.Section("Nodes") + ranks.Section("Ranks that were not measured to their end");
}

}  // namespace

std::string ReportHtml(const JobProfile& job, const Report& report) {
  const std::string title = "Job " + (job.name.empty() ? job.id : job.name);
  return "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n<title>" + Escaped(title) +
         "</title>\n<style>" + kStyle + "</style></head><body>\n<h1>" + Escaped(title) +
         (job.program.empty() ? "" : ": " + Escaped(job.program)) + "</h1>\n<p>" +
         Counted(static_cast<int64_t>(job.ranks.size()), "rank") + " on " +
         Counted(static_cast<int64_t>(job.nodes.size()), "node") + ", " + TimeWords(job.wall_ns) +
         ", exit code " + std::to_string(job.exit_code) + "; " + std::to_string(report.measured) +
         " measured: " + Percent(report.ferry_ns, report.life_ns) + " of their time in Ferry, " +
         Percent(report.waited_ns, report.life_ns) + " in waits.</p>\n" + AdviceList(report) +
         "<h2>Ranks</h2>\n<p class=key><i style=\"background:var(--wait)\"></i>waits<i "
         "style=\"background:var(--ferry)\"></i>else in Ferry<i "
         "style=\"background:var(--poll)\"></i>polls<i "
         "style=\"background:#8883\"></i>outside</p>\n" +
         Bars(report) + HeatMap(report) + Sizes(report) + Tables(report) + Notes(job, report) +
         "</body></html>\n";
}

}  // namespace ferry::tools
