#include "tools/ferryctl/job_names.h"

#include <pwd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/counted.h"
#include "common/job_name.h"
#include "common/number_text.h"
#include "tools/display/table.h"
#include "tools/ferryctl/rank_name.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostListed = 20;

// Returns true if `word`, an id or a name of the job's launch, with the job's number of the
// programs that follow each other or without, is `name`.
bool Names(const std::string& word, uint32_t program, const std::string& name) {
  return !word.empty() && (word == name || word + kProgramMark + std::to_string(program) == name);
}

bool IsCalled(const control::JobStatus& job, const std::string& name) {
  const uint32_t program = ReadJobName(job.job_id()).program;
  return Names(job.name(), program, name) || Names(job.program(), program, name);
}

bool HasId(const control::JobStatus& job, const std::string& name) {
  const JobName read = ReadJobName(job.job_id());
  return job.job_id() == name || Names(read.launch, read.program, name);
}

// The ids of launches.
std::set<std::string> LaunchesOf(const std::vector<const control::JobStatus*>& jobs) {
  std::set<std::string> launches;
  for (const control::JobStatus* job : jobs) {
    launches.insert(ReadJobName(job->job_id()).launch);
  }
  return launches;
}

std::string NewestOf(const std::vector<const control::JobStatus*>& jobs) {
  return (*std::max_element(jobs.begin(), jobs.end(),
                            [](const auto* a, const auto* b) {
                              return ReadJobName(a->job_id()).program <
                                     ReadJobName(b->job_id()).program;
                            }))
      ->job_id();
}

template <typename Wanted>
std::vector<const control::JobStatus*> Those(const JobList& jobs, Wanted wanted) {
  std::vector<const control::JobStatus*> those;
  for (const control::JobStatus& job : jobs) {
    if (wanted(job)) {
      those.push_back(&job);
    }
  }
  return those;
}

std::string ListOf(const std::vector<const control::JobStatus*>& jobs) {
  JobList list;
  for (const control::JobStatus* job : jobs) {
    list.push_back(*job);
  }
  return JobLines(list);
}

Status NoSuchJob(const std::string& name) {
  return {ErrorCode::kNotFound, "there is no job " + name +
                                    " on this daemon, and no rank of that name (`ferryctl status` "
                                    "lists its jobs)"};
}

}  // namespace

JobList JobsOf(std::span<const control::StatusReply* const> daemons) {
  JobList jobs;
  std::set<std::string> known;
  for (const control::StatusReply* daemon : daemons) {
    for (const control::JobStatus& job : daemon->jobs()) {
      if (known.insert(job.job_id()).second) {
        jobs.push_back(job);
      }
    }
  }
  return jobs;
}

std::string LabelOf(const JobList& jobs, const std::string& job_id) {
  const auto found = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const auto& job) { return job.job_id() == job_id; });
  if (found == jobs.end()) {
    return job_id;
  }
  const uint32_t program = ReadJobName(job_id).program;
  for (const std::string& word : {found->name(), found->program()}) {
    if (!word.empty() && word.find_first_of(" ./") == word.npos &&
        LaunchesOf(Those(jobs, [&](const auto& job) {
          return IsCalled(job, word) || HasId(job, word);
        })).size() == 1) {
      return TextOf(JobName{word, program});
    }
  }
  return job_id;
}

std::string JobLines(const JobList& jobs) {
  std::string lines;
  for (size_t i = 0; i < std::min(jobs.size(), kMostListed); ++i) {
    const control::JobStatus& job = jobs[i];
    const std::string label = LabelOf(jobs, job.job_id());
    lines += "\n  " + label + (label == job.job_id() ? "" : " (" + job.job_id() + ")") + ": " +
             Counted(job.size(), "rank");
    if (!job.program().empty()) {
      lines += " of " + job.program();
    }
    lines += ", for " + DurationText(job.age_ms());
    if (!job.slurm_id().empty()) {
      lines += ", in Slurm's job " + job.slurm_id();
    }
  }
  if (jobs.size() > kMostListed) {
    lines += "\n  and " + std::to_string(jobs.size() - kMostListed) + " more";
  }
  return lines;
}

std::string UserName(uint32_t uid) {
  std::vector<char> strings(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  const bool is_there =
      getpwuid_r(uid, &entry, strings.data(), strings.size(), &found) == 0 && found != nullptr;
  return is_there ? entry.pw_name : std::to_string(uid);
}

void FillUsers(control::StatusReply* reply) {
  std::map<uid_t, std::string> known;
  for (control::JobStatus& job : *reply->mutable_jobs()) {
    const auto [user, is_new] = known.try_emplace(job.uid());
    if (is_new) {
      user->second = UserName(job.uid());
    }
    job.set_user(user->second);
  }
}

bool IsMeant(const control::JobStatus& job, const std::string& name) {
  return HasId(job, name) || IsCalled(job, name);
}

StatusOr<std::string> MeantJob(const JobList& jobs, const std::string& name) {
  if (const auto with_id = Those(jobs, [&](const auto& job) { return HasId(job, name); });
      !with_id.empty()) {
    return NewestOf(with_id);
  }
  const auto called = Those(jobs, [&](const auto& job) { return IsCalled(job, name); });
  if (called.empty()) {
    return NoSuchJob(name);
  }
  if (const size_t launches = LaunchesOf(called).size(); launches > 1) {
    return Status(ErrorCode::kInvalidArgument, std::to_string(launches) + " jobs are called " +
                                                   name + ": type the id in place of the name" +
                                                   ListOf(called));
  }
  return NewestOf(called);
}

StatusOr<std::string> OnlyJob(const JobList& jobs, uint32_t uid) {
  auto own = Those(jobs, [&](const auto& job) { return job.uid() == uid; });
  if (own.empty()) {
    own = Those(jobs, [](const auto&) { return true; });
  }
  if (own.empty()) {
    return Status(ErrorCode::kNotFound, "no job of yours runs here");
  }
  if (const size_t launches = LaunchesOf(own).size(); launches > 1) {
    return Status(ErrorCode::kInvalidArgument,
                  "you have " + std::to_string(launches) +
                      " jobs here: type JOB.RANK, with one of these for JOB" + ListOf(own));
  }
  return NewestOf(own);
}

StatusOr<Meant> ReadMeant(const JobList& jobs, const std::string& text, uint32_t uid) {
  const StatusOr<std::string> whole = MeantJob(jobs, text);
  if (whole.ok() || whole.status().code() != ErrorCode::kNotFound) {
    FERRY_RETURN_IF_ERROR(whole.status());
    return Meant{*whole, {}};
  }
  if (const auto rank = NumberIn<uint32_t>(text); rank && *rank <= INT32_MAX) {
    const StatusOr<std::string> job = OnlyJob(jobs, uid);
    FERRY_RETURN_IF_ERROR(job.status());
    return Meant{*job, *rank};
  }
  const StatusOr<RankName> name = ParseRankName(text);
  if (!name.ok()) {
    return whole.status();
  }
  const StatusOr<std::string> job = MeantJob(jobs, name->job_id);
  FERRY_RETURN_IF_ERROR(job.status());
  return Meant{*job, name->rank};
}

}  // namespace ferry::tools
