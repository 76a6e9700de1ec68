// Which job a user means. Beside its id a job has the name that `ferryrun --name` gave it, and that
// of its program: each names it, unless jobs of several launches have it, for which a user must
// type ids. Of programs that follow each other (common/job_name.h) "x" means the newest, "x#2" the
// second, whether x is an id or a name.
//
// Pure functions but for UserName and FillUsers; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "proto/control.pb.h"

namespace ferry::tools {

using JobList = std::vector<control::JobStatus>;

// The jobs of these daemons, each once.
JobList JobsOf(std::span<const control::StatusReply* const> daemons);

// Returns what people call a job: its name, or its program, with #N for the Nth program of its
// launch; the id where another one is called the same, or it has neither.
std::string LabelOf(const JobList& jobs, const std::string& job_id);
// A line for each job: its label, id, ranks, program, age and Slurm job.
std::string JobLines(const JobList& jobs);

// Returns the name of a user, or the number as text; blocks for as long as the user database does.
std::string UserName(uint32_t uid);
// Fills in the names of the jobs' users; blocks like UserName.
void FillUsers(control::StatusReply* reply);

// Returns true if a user may mean that job by the name.
bool IsMeant(const control::JobStatus& job, const std::string& name);
// Returns the id of the job that the name means. kNotFound: none; kInvalidArgument: several, with
// their list.
StatusOr<std::string> MeantJob(const JobList& jobs, const std::string& name);
// Returns the id of the only job of that user, or of the only one if none is. Errors as of
// MeantJob.
StatusOr<std::string> OnlyJob(const JobList& jobs, uint32_t uid);

// A job, or a rank of it.
struct Meant {
  std::string job_id;
  std::optional<uint32_t> rank;
};
// Reads "JOB", "JOB.RANK", or "RANK" of the only job. Errors: those of MeantJob and OnlyJob.
StatusOr<Meant> ReadMeant(const JobList& jobs, const std::string& text, uint32_t uid);

}  // namespace ferry::tools
