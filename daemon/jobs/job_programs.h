// The programs that follow each other in the slots of one launch (`./a && ./b` in each of them).
// The ranks of each program meet in a job of its own, "x#2" after "x".
//
// A rank of this node joins the next program once it has left the last one in good order. So a
// program begins on a node when the first of its ranks attaches there, or when another node tells
// of its own; which of two programs a rank is in never depends on the others. A rank that dies, or
// an abort, ends the series: what comes later is refused, and says why.
//
// Thread: the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "common/status.h"
#include "daemon/jobs/jobs.h"

namespace ferry::daemon {

class JobPrograms {
 public:
  using Table = std::map<std::string, std::shared_ptr<JobSeries>>;  // by the first job's id

  // `jobs` must outlive it.
  explicit JobPrograms(Jobs& jobs) : jobs_(jobs) {}

  const Table& series() const { return series_; }
  // The series of that job, or of its first program; null if there is none.
  std::shared_ptr<JobSeries> Find(const std::string& job_id) const;
  // Likewise; the job may be one that has not begun here, or has ended.
  std::shared_ptr<JobSeries> FindLaunch(const std::string& job_id) const;
  // Begins a series with its first program. `quota` is for all of them. From now on the daemons of
  // its nodes may greet this one, also between two programs. Errors as Jobs::BeginJob.
  Status Begin(JobSpec spec, QuotaHold quota);
  // Forgets the series: no further program follows, because of `why`. Its jobs go on.
  void Close(JobSeries& series, const Status& why);

  // True of a job that ends if its launcher is still to tell how the processes of its ranks ended.
  bool ExitsCome(const JobRecord& job) const;

  // The job that a rank of this node, which asks to attach, is to be a member of.
  // kAlreadyExists: it is attached, or its process has ended; the failure of the series; errors of
  // Jobs::BeginJob.
  StatusOr<JobRecord*> JobFor(JobSeries& series, uint32_t rank);
  // Notes that a rank has attached to the job that JobFor gave.
  static void NoteAttached(const JobRecord& job, uint32_t rank);
  // As JobRegistry::RankProcessEnded, once `rank` is known to be one of this node. `program`: in
  // which others wait.
  bool ProcessEnded(JobSeries& series, uint32_t rank, const std::string& how, uint32_t program);
  // Notes that a rank of the job has died, or that the job was aborted: no other program follows,
  // and one that has begun to gather fails.
  void NoteFailure(const JobRecord& job, const Status& why);

  // The link to the daemon there is gone, as NodeEvents::OnNodeDown: no program follows in series
  // that have ranks there.
  void OnNodeDown(const std::string& address, const Status& why);
  // Ok if `proof` is of the secret of that job, which may be one of a series that has not begun
  // here, or has ended. kNotFound, kPermissionDenied.
  Status CheckPeer(const std::string& job_id, const std::string& proof, uint64_t incarnation) const;
  // The job that another daemon's news are about; it begins here if it is the next one. kNotFound:
  // it may be later. kPermissionDenied: `proof` is none of the job's secret. The failure of the
  // series.
  StatusOr<JobRecord*> FindOrBegin(const std::string& job_id, const std::string& proof,
                                   uint64_t incarnation);

 private:
  StatusOr<JobRecord*> BeginProgram(JobSeries& series, uint32_t program);
  void EndGone(JobRecord& job, uint32_t rank, const std::string& how);

  Jobs& jobs_;
  Table series_;
  // By series: the addresses that it has named to NodeLinks.
  std::map<std::string, std::set<std::string>> named_;
};

}  // namespace ferry::daemon
