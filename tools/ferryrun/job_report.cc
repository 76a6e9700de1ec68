#include "tools/ferryrun/job_report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

#include "common/job_name.h"
#include "config/environment.h"

namespace ferry::tools {
namespace {

// Of a script that starts more programs of Ferry than this, one after the other, the first ones.
constexpr uint32_t kMostPrograms = 64;

std::string FolderOf(const config::Options& options) {
  const std::string& folder = options.job_reports;
  if (!folder.starts_with("~/")) {
    return folder;
  }
  return std::string(config::FindVariable(config::ProcessEnvironment(), "HOME").value_or("")) +
         folder.substr(1);
}

std::string TextFor(const std::string& path, const JobProfile& profile) {
  const Report report = MakeReport(profile);
  return path.ends_with(".json")   ? ReportJson(profile, report)
         : path.ends_with(".html") ? ReportHtml(profile, report)
                                   : ReportText(profile, report);
}

// That of a later program: "out.2.html".
std::string PathOf(const std::string& path, uint32_t program) {
  if (program == 1) {
    return path;
  }
  const size_t dot = path.rfind('.');
  return path.substr(0, dot) + "." + std::to_string(program) + path.substr(dot);
}

// In the folder for all jobs: names sort by time.
std::string NameOf(const JobProfile& profile) {
  const time_t now = time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ-", &parts);
  return text + profile.id + ".html";
}

void Complain(const Status& status) {
  std::fprintf(stderr, "ferryrun: no report: %s\n", status.message().c_str());
}

}  // namespace

bool JobReport::IsWanted(const Arguments& arguments, const config::Options& options) {
  return arguments.report || !options.job_reports.empty();
}

StatusOr<JobReport> JobReport::Create(const Arguments& arguments, const config::Options& options) {
  JobReport report;
  report.is_asked_for_ = arguments.report;
  report.path_ = arguments.report_file;
  report.folder_ = FolderOf(options);
  report.eager_max_bytes_ = options.eager_max_bytes;
  report.is_bound_ = options.bind_to != "none";
  if (!report.path_.empty()) {
    StatusOr<NewFile> file = NewFile::Create(report.path_, /*replace=*/true);
    FERRY_RETURN_IF_ERROR(file.status());
    report.file_.emplace(std::move(*file));
  }
  return report;
}

JobProfile JobReport::Fetch(const Job& job, const std::vector<Node>& nodes, uint32_t program,
                            bool* is_known) const {
  JobProfile profile;
  profile.id = TextOf(JobName{job.id(), program});
  profile.eager_max_bytes = eager_max_bytes_;
  profile.is_bound = is_bound_;
  profile.node_of_rank = job.node_of_rank();
  profile.ranks.resize(job.size());
  for (uint32_t number = 0; number < nodes.size(); ++number) {
    const Node& node = nodes[number];
    NodeFacts facts{.name = node.name};
    const Status status = FetchReports(node.ask, profile.id, &facts, &profile.ranks);
    facts.trouble = status.ok() ? "" : status.message();
    *is_known |= status.ok();
    if (status.ok()) {
      std::vector<ClockSample> clocks = node.clocks;
      (void)AskClock(node.ask, profile.id, &clocks);
      facts.clock = NodeClock::Of(clocks);
    }
    for (uint32_t rank = 0; rank < job.size(); ++rank) {
      RankProfile& of_rank = profile.ranks[rank];
      if (job.NodeOf(rank) == number) {
        of_rank.node = number;
        if (!of_rank.is_measured && of_rank.refusal.empty()) {
          of_rank.refusal = facts.trouble;
        }
      }
    }
    profile.nodes.push_back(std::move(facts));
  }
  return profile;
}

void JobReport::WriteOne(const JobProfile& profile, uint32_t program) {
  if (is_asked_for_ && path_.empty()) {
    std::fprintf(stderr, "\n%s", TextFor("", profile).c_str());
  }
  const auto write = [&profile](std::optional<NewFile>* file, const std::string& path) {
    if (!file->has_value()) {
      StatusOr<NewFile> made = NewFile::Create(path, /*replace=*/true);
      if (!made.ok()) {
        return Complain(made.status());
      }
      file->emplace(std::move(*made));
    }
    if (const Status status = (*file)->Commit(TextFor(path, profile)); !status.ok()) {
      Complain(status);
    }
    file->reset();
  };
  if (!path_.empty()) {
    write(&file_, PathOf(path_, program));
  }
  if (!folder_.empty()) {
    std::optional<NewFile> file;
    write(&file, folder_ + "/" + NameOf(profile));
  }
}

void JobReport::NoteClocks(const Job& job, std::vector<Node>* nodes) {
  for (Node& node : *nodes) {
    (void)AskClock(node.ask, TextOf(JobName{job.id(), 1}), &node.clocks);
  }
}

void JobReport::Gather(const Job& job, const std::vector<Node>& nodes) {
  bool is_known = true;
  for (uint32_t program = 1; is_known && program <= kMostPrograms; ++program) {
    is_known = false;
    JobProfile profile = Fetch(job, nodes, program, &is_known);
    if (is_known || program == 1) {
      profiles_.push_back(std::move(profile));
    }
  }
}

void JobReport::Write(const End& end) {
  uint32_t program = 1;
  for (JobProfile& profile : profiles_) {
    profile.name = end.labels.name;
    profile.program = end.labels.program;
    profile.wall_ns = end.wall_ns;
    profile.exit_code = end.exit_code;
    WriteOne(profile, program++);
  }
}

}  // namespace ferry::tools
