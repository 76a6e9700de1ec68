// The report for people: see report.h.
#include <algorithm>
#include <cstdio>
#include <string>

#include "common/counted.h"
#include "tools/display/table.h"
#include "tools/profile/report.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostLines = 10;
constexpr size_t kMostAdvice = 6;
constexpr size_t kAllRanks = 16;  // of so many each has its line
constexpr size_t kMostName = 36;

std::string Percent(uint64_t part, uint64_t whole) {
  char text[16];
  std::snprintf(text, sizeof(text), "%.1f %%",
                whole == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

// A long name's end, which tells files apart.
std::string ShortName(const std::string& name) {
  return name.size() > kMostName ? "..." + name.substr(name.size() - (kMostName - 3)) : name;
}

std::string Section(const std::string& title, const Table& table) {
  return table.empty() ? "" : "\n" + title + "\n" + table.FittedText({.width = 100}, 1);
}

// Those that spend least of their time outside Ferry's waits say least: the most striking first.
std::string RanksText(const Report& report) {
  std::vector<const RankLine*> shown;
  for (const RankLine& line : report.ranks) {
    shown.push_back(&line);
  }
  std::string title = "Ranks";
  if (shown.size() > kAllRanks) {
    std::stable_sort(shown.begin(), shown.end(), [](const RankLine* one, const RankLine* two) {
      return one->waited_ns > two->waited_ns;
    });
    const size_t half = kAllRanks / 2;
    shown.erase(shown.begin() + half, shown.end() - half);
    title = "Ranks that waited most, and least, of " + std::to_string(report.ranks.size());
  }
  Table table({{"rank", Align::kRight},
               {"time", Align::kRight},
               {"in Ferry", Align::kRight},
               {"waits", Align::kRight},
               {"polls", Align::kRight},
               {"sent", Align::kRight},
               {"messages", Align::kRight},
               {"note"}});
  for (const RankLine* line : shown) {
    const bool is_known = line->is_measured;
    const auto part = [&](uint64_t ns) { return is_known ? Percent(ns, line->life_ns) : ""; };
    table.AddRow({std::to_string(line->rank), is_known ? TimeWords(line->life_ns) : "",
                  part(line->ferry_ns), part(line->waited_ns), part(line->polled_ns),
                  is_known ? BytesText(line->sent_bytes) : "",
                  is_known ? std::to_string(line->messages) : "", line->note});
  }
  return Section(title, table);
}

std::string CallsText(const Report& report) {
  Table table({{"call"},
               {"on"},
               {"count", Align::kRight},
               {"bytes", Align::kRight},
               {"time", Align::kRight},
               {"of all", Align::kRight},
               {"waits", Align::kRight},
               {"mean", Align::kRight},
               {"longest", Align::kRight}});
  for (size_t i = 0; i < std::min(report.calls.size(), kMostLines); ++i) {
    const CallLine& line = report.calls[i];
    table.AddRow(
        {CallWords(line.name, line.inner), line.group, std::to_string(line.count),
         BytesText(line.bytes), TimeWords(line.time_ns), Percent(line.time_ns, report.life_ns),
         TimeWords(line.waited_ns), TimeWords(line.time_ns / std::max<uint64_t>(line.count, 1)),
         TimeWords(line.longest_ns) + " (rank " + std::to_string(line.longest_rank) + ")"});
  }
  return Section("Calls, all ranks together", table);
}

std::string MeetingsText(const Report& report) {
  Table table({{"collective"},
               {"on"},
               {"compared", Align::kRight},
               {"came last", Align::kRight},
               {"so often", Align::kRight},
               {"lost by it", Align::kRight},
               {"lost in all", Align::kRight}});
  for (size_t i = 0; i < std::min(report.meetings.size(), kMostLines); ++i) {
    const MeetingLine& line = report.meetings[i];
    table.AddRow({CallWords(line.name, shm::CallName::kNone), line.group,
                  std::to_string(line.compared), "rank " + std::to_string(line.last_rank),
                  std::to_string(line.last_times), TimeWords(line.last_lost_ns),
                  TimeWords(line.lost_ns)});
  }
  return Section("Collectives: who came last", table);
}

std::string LateText(const Report& report) {
  Table table({{"waited"}, {"for"}, {"times", Align::kRight}, {"time", Align::kRight}});
  for (size_t i = 0; i < std::min(report.late.size(), kMostLines); ++i) {
    const LatePair& pair = report.late[i];
    table.AddRow(
        {"rank " + std::to_string(pair.waiter),
         "rank " + std::to_string(pair.late) + (pair.is_sender ? " to send" : " to receive"),
         std::to_string(pair.waits), TimeWords(pair.waited_ns)});
  }
  return Section("Messages: who waited for whom", table);
}

std::string PathsText(const Report& report) {
  uint64_t all = 0;
  for (const PathLine& line : report.paths) {
    all += line.bytes;
  }
  Table table(
      {{"path"}, {"messages", Align::kRight}, {"bytes", Align::kRight}, {"part", Align::kRight}});
  for (const PathLine& line : report.paths) {
    table.AddRow({line.path, std::to_string(line.messages), BytesText(line.bytes),
                  Percent(line.bytes, all)});
  }
  return Section("Paths of messages", table);
}

std::string FilesText(const Report& report) {
  Table table({{"file"},
               {"opens", Align::kRight},
               {"reads", Align::kRight},
               {"read", Align::kRight},
               {"writes", Align::kRight},
               {"written", Align::kRight},
               {"calls", Align::kRight},
               {"time", Align::kRight},
               {"longest", Align::kRight}});
  for (size_t i = 0; i < std::min(report.files.size(), kMostLines); ++i) {
    const FileLine& line = report.files[i];
    table.AddRow(
        {ShortName(line.name), std::to_string(line.opens), std::to_string(line.reads),
         BytesText(line.read_bytes), std::to_string(line.writes), BytesText(line.written_bytes),
         std::to_string(line.calls), TimeWords(line.time_ns),
         TimeWords(line.longest_ns) + " (rank " + std::to_string(line.longest_rank) + ")"});
  }
  std::string title = "Files, all ranks together";
  title += report.files.size() > kMostLines
               ? ", those with most time of " + std::to_string(report.files.size())
               : "";
  title += report.unlisted_file_calls != 0
               ? ", without " + std::to_string(report.unlisted_file_calls) + " calls on others"
               : "";
  return Section(title, table);
}

std::string AdviceText(const Report& report) {
  if (report.advice.empty()) {
    return report.measured == 0 ? "" : "\nNothing stands out.\n";
  }
  std::string text = "\nWhat to look at\n";
  for (size_t i = 0; i < std::min(report.advice.size(), kMostAdvice); ++i) {
    const Advice& advice = report.advice[i];
    text += std::to_string(i + 1) + ". " + advice.cause + ": " + advice.sentence + ".\n   " +
            advice.remedy + ".\n";
  }
  return text;
}

}  // namespace

std::string ReportText(const JobProfile& job, const Report& report) {
  std::string text = "Report of job " + job.id;
  text += job.name.empty() ? "" : " (" + job.name + ")";
  text += job.program.empty() ? "" : ": " + job.program;
  text += "\n" + Counted(static_cast<int64_t>(job.ranks.size()), "rank") + " on " +
          Counted(static_cast<int64_t>(job.nodes.size()), "node") + ", " + TimeWords(job.wall_ns) +
          ", exit code " + std::to_string(job.exit_code) + "; " + std::to_string(report.measured) +
          " measured: " + Percent(report.ferry_ns, report.life_ns) + " of their time in Ferry, " +
          Percent(report.waited_ns, report.life_ns) + " in waits\n";
  for (const NodeFacts& node : job.nodes) {
    text += "node " + node.name + ": " +
            (node.trouble.empty() ? "ferryd used " + TimeWords(node.cpu_ns) + " of processor time"
                                  : node.trouble) +
            "\n";
  }
  return text + AdviceText(report) + RanksText(report) + CallsText(report) + MeetingsText(report) +
         LateText(report) + PathsText(report) + FilesText(report);
}

}  // namespace ferry::tools
