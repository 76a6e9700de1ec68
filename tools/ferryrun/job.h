// A job as its daemons know it.
//
// Main thread; CreatedJob blocks for at most the time that its LauncherClient was given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/rank_exits.h"
#include "common/status.h"
#include "config/options.h"
#include "tools/admin/daemon_client.h"
#include "tools/ferryrun/arguments.h"

namespace ferry::tools {

// A daemon that takes part in the job, by its places.
struct JobNode {
  std::string run_directory;
  std::string control_address;
};

// The words that people know a job by: CreateJobRequest has the same words.
struct JobLabels {
  std::string name;
  std::string program;
  std::string slurm_id;
};
// The labels of a job of that command line. `environment`: this process's.
JobLabels LabelsOf(const Arguments& arguments, const char* const* environment);

// The nodes and ranks of a job.
class Job {
 public:
  // Draws an id and a secret. `tree_radix`: CreateJobRequest.tree_radix.
  Job(std::vector<JobNode> nodes, std::vector<uint32_t> node_of_rank, uint32_t tree_radix,
      JobLabels labels = {});

  const std::string& id() const { return id_; }
  uint32_t size() const { return static_cast<uint32_t>(node_of_rank_.size()); }
  uint32_t NodeOf(uint32_t rank) const { return node_of_rank_[rank]; }
  // Returns the request that creates the job at that node's daemon.
  control::CreateJobRequest RequestFor(uint32_t node) const;
  // Returns what the requests for all nodes have in common: all but `node` and the nodes of
  // ranks.
  control::CreateJobRequest CommonRequest() const;
  const std::vector<uint32_t>& node_of_rank() const { return node_of_rank_; }
  // Returns "FERRY_NAME=value" strings for all ranks alike: the job, and `options`.
  std::vector<std::string> Environment(config::Options options) const;
  // Returns those of one rank: its place in the job. They are the same names for each rank.
  std::vector<std::string> PlaceOf(uint32_t rank) const;

 private:
  std::vector<JobNode> nodes_;
  std::vector<uint32_t> node_of_rank_;
  uint32_t tree_radix_ = 0;
  JobLabels labels_;
  std::string id_;
  std::string secret_;  // text, since it travels in the environment
};

// A job at one daemon, which lives as long as this object.
class CreatedJob {
 public:
  // `client` must outlive it.
  static StatusOr<CreatedJob> Create(const LauncherClient& client,
                                     const control::CreateJobRequest& request);
  CreatedJob(CreatedJob&& other) noexcept;
  CreatedJob& operator=(CreatedJob&&) = delete;
  ~CreatedJob();  // destroys it, if the daemon can still be reached
  // Makes no more calls to a daemon that has died, hangs, or is about to be stopped. It ends the
  // job by itself, when it sees that the launcher's connection has ended.
  void GiveUp() const { is_given_up_ = true; }

  // Tells the daemon that the process of a rank there has ended, and how, so that the other ranks
  // do not wait for it to join `program`, of those that follow each other. Returns true if the rank
  // never attached to that. kTimeout: the daemon does not answer, and is given up.
  StatusOr<bool> TellRankEnded(uint32_t rank, const std::string& how, uint32_t program) const;

  // Has the daemon told, with the end of the job, how the processes of the ranks there have ended.
  void NoteExits(const RankExits& exits) { exits_ = TextOf(exits); }

 private:
  CreatedJob(const LauncherClient& client, std::string id) : client_(&client), id_(std::move(id)) {}

  const LauncherClient* client_;  // null: moved away
  mutable bool is_given_up_ = false;
  std::string id_;
  std::string exits_;  // empty: not known
};

}  // namespace ferry::tools
