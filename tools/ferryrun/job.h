// A job as its daemons know it, from creation to destruction.
//
// Main thread; each call blocks for at most the time that its LauncherClients were given per
// daemon.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "tools/admin/launcher_client.h"

namespace ferry::tools {

// A daemon that takes part in the job.
struct JobNode {
  LauncherClient client;
  std::string run_directory;
  std::string control_address;
};

class Job {
 public:
  // Draws an id and a secret, and makes the job known at every daemon. `nodes` must outlive it.
  static StatusOr<Job> Create(const std::vector<JobNode>& nodes, uint32_t ranks);
  Job(Job&& other) noexcept;
  Job& operator=(Job&&) = delete;
  ~Job();  // destroys it at every daemon that can still be reached

  uint32_t size() const { return static_cast<uint32_t>(node_of_rank_.size()); }
  // "FERRY_NAME=value" strings for a rank: its place in the job, and `options`.
  std::vector<std::string> Environment(uint32_t rank, config::Options options) const;

 private:
  Job(const std::vector<JobNode>& nodes, uint32_t ranks);

  const std::vector<JobNode>* nodes_;
  std::string id_;
  std::string secret_;  // text, since it travels in the environment
  std::vector<uint32_t> node_of_rank_;
  size_t created_ = 0;  // at so many nodes
};

}  // namespace ferry::tools
