#include "tools/ferryrun/job.h"

#include <sys/random.h>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "common/hex_text.h"
#include "common/job_name.h"
#include "config/environment.h"

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

Job::Job(std::vector<JobNode> nodes, std::vector<uint32_t> node_of_rank, uint32_t tree_radix)
    : nodes_(std::move(nodes)),
      node_of_rank_(std::move(node_of_rank)),
      tree_radix_(tree_radix),
      id_(HexText(RandomBytes(kIdBytes))),
      secret_(HexText(RandomBytes(kSecretBytes))) {}

control::CreateJobRequest Job::RequestFor(uint32_t node) const {
  control::CreateJobRequest request = CommonRequest();
  request.mutable_node_of_rank()->Add(node_of_rank_.begin(), node_of_rank_.end());
  request.set_node(node);
  return request;
}

control::CreateJobRequest Job::CommonRequest() const {
  control::CreateJobRequest request;
  request.set_job_id(id_);
  request.set_secret(secret_);
  request.set_size(size());
  for (const JobNode& one : nodes_) {
    request.add_node_addresses(one.control_address);
  }
  request.set_tree_radix(tree_radix_);
  return request;
}

std::vector<std::string> Job::Environment(uint32_t rank, config::Options options) const {
  options.config_file.clear();  // it has been read, and ranks read only their environment
  options.node = node_of_rank_[rank];
  options.run_directory = nodes_[options.node].run_directory;
  options.job_id = id_;
  options.job_secret = secret_;
  options.rank = rank;
  options.size = size();
  return config::EnvironmentFor(options);
}

StatusOr<CreatedJob> CreatedJob::Create(const LauncherClient& client,
                                        const control::CreateJobRequest& request) {
  control::CreateJobReply reply;
  FERRY_RETURN_IF_ERROR(client.Call(&LauncherClient::Stub::CreateJob, request, &reply));
  return CreatedJob(client, request.job_id());
}

StatusOr<bool> CreatedJob::TellRankEnded(uint32_t rank, const std::string& how,
                                         uint32_t program) const {
  if (is_given_up_) {
    return Status(ErrorCode::kTimeout, "the daemon does not answer");
  }
  control::RankEndedRequest request;
  request.set_job_id(TextOf(JobName{id_, program}));
  request.set_rank(rank);
  request.set_how(how);
  control::RankEndedReply reply;
  const Status status = client_->Call(&LauncherClient::Stub::RankEnded, request, &reply);
  is_given_up_ = status.code() == ErrorCode::kTimeout;
  FERRY_RETURN_IF_ERROR(status);
  return reply.was_absent();
}

CreatedJob::CreatedJob(CreatedJob&& other) noexcept
    : client_(std::exchange(other.client_, nullptr)),
      is_given_up_(other.is_given_up_),
      id_(std::move(other.id_)) {}

CreatedJob::~CreatedJob() {
  if (client_ != nullptr && !is_given_up_) {
    control::DestroyJobRequest request;
    request.set_job_id(id_);
    control::DestroyJobReply reply;
    // A daemon that has died in between has nothing left to destroy.
    (void)client_->Call(&LauncherClient::Stub::DestroyJob, request, &reply);
  }
}

}  // namespace ferry::tools
