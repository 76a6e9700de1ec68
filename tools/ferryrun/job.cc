#include "tools/ferryrun/job.h"

#include <sys/random.h>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "common/hex_text.h"
#include "config/environment.h"
#include "tools/ferryrun/placement.h"

namespace ferry::tools {
namespace {

constexpr size_t kIdBytes = 6;
constexpr size_t kSecretBytes = 32;

std::vector<uint8_t> RandomBytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  // Up to 256 bytes come whole; it fails only where the kernel has no random numbers at all.
  if (getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  return bytes;
}

}  // namespace

Job::Job(const std::vector<JobNode>& nodes, uint32_t ranks)
    : nodes_(&nodes),
      id_(HexText(RandomBytes(kIdBytes))),
      secret_(HexText(RandomBytes(kSecretBytes))),
      node_of_rank_(PlaceInBlocks(ranks, static_cast<uint32_t>(nodes.size()))) {}

Job::Job(Job&& other) noexcept
    : nodes_(other.nodes_),
      id_(std::move(other.id_)),
      secret_(std::move(other.secret_)),
      node_of_rank_(std::move(other.node_of_rank_)),
      created_(std::exchange(other.created_, 0)) {}

StatusOr<Job> Job::Create(const std::vector<JobNode>& nodes, uint32_t ranks) {
  Job job(nodes, ranks);
  control::CreateJobRequest request;
  request.set_job_id(job.id_);
  request.set_secret(job.secret_);
  request.set_size(ranks);
  request.mutable_node_of_rank()->Add(job.node_of_rank_.begin(), job.node_of_rank_.end());
  for (const JobNode& node : nodes) {
    request.add_node_addresses(node.control_address);
  }
  for (const JobNode& node : nodes) {
    request.set_node(static_cast<uint32_t>(job.created_));
    control::CreateJobReply reply;
    FERRY_RETURN_IF_ERROR(node.client.Call(&LauncherClient::Stub::CreateJob, request, &reply));
    ++job.created_;
  }
  return job;
}

Job::~Job() {
  control::DestroyJobRequest request;
  request.set_job_id(id_);
  for (size_t node = 0; node < created_; ++node) {
    control::DestroyJobReply reply;
    // A daemon that has died in between has nothing left to destroy.
    (void)(*nodes_)[node].client.Call(&LauncherClient::Stub::DestroyJob, request, &reply);
  }
}

std::vector<std::string> Job::Environment(uint32_t rank, config::Options options) const {
  options.config_file.clear();  // it has been read, and ranks read only their environment
  options.node = node_of_rank_[rank];
  options.run_directory = (*nodes_)[options.node].run_directory;
  options.job_id = id_;
  options.job_secret = secret_;
  options.rank = rank;
  options.size = size();
  return config::EnvironmentFor(options);
}

}  // namespace ferry::tools
