#include "tools/ferryrun/job.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "common/hex_text.h"
#include "common/job_name.h"
#include "common/rank_table.h"
#include "config/environment.h"

namespace ferry::tools {
namespace {

constexpr size_t kIdBytes = 6;
constexpr size_t kSecretBytes = 32;
constexpr char kRankName[] = "FERRY_RANK=";
constexpr char kNodeName[] = "FERRY_NODE=";

std::vector<uint8_t> RandomBytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  // Up to 256 bytes come whole; it fails only where the kernel has no random numbers at all.
  if (getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  return bytes;
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The program as people call it: of "python3 -u train.py" it is "train.py".
std::string ProgramName(const std::vector<std::string>& words) {
  std::string program = BaseName(words.front());
  const bool runs_scripts = program.starts_with("python") || program == "bash" || program == "sh";
  const auto script = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
    return word == "-c" || !word.starts_with('-');
  });
  const bool has_script = runs_scripts && script != words.end() && *script != "-c";
  return has_script ? BaseName(*script) : program;
}

}  // namespace

JobLabels LabelsOf(const Arguments& arguments, const char* const* environment) {
  JobLabels labels{arguments.name, "",
                   std::string(config::FindVariable(environment, "SLURM_JOB_ID").value_or(""))};
  for (const Part& part : arguments.parts) {
    const std::string program = ProgramName(part.program);
    const bool is_told = labels.program == program || labels.program.ends_with(": " + program);
    if (!is_told) {
      labels.program += (labels.program.empty() ? "" : " : ") + program;
    }
  }
  return labels;
}

Job::Job(std::vector<JobNode> nodes, std::vector<uint32_t> node_of_rank, uint32_t tree_radix,
         JobLabels labels)
    : nodes_(std::move(nodes)),
      node_of_rank_(std::move(node_of_rank)),
      tree_radix_(tree_radix),
      labels_(std::move(labels)),
      id_(HexText(RandomBytes(kIdBytes))),
      secret_(HexText(RandomBytes(kSecretBytes))) {}

control::CreateJobRequest Job::RequestFor(uint32_t node) const {
  control::CreateJobRequest request = CommonRequest();
  request.set_packed_nodes(PackNodes(node_of_rank_));
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
  request.set_name(labels_.name);
  request.set_program(labels_.program);
  request.set_slurm_id(labels_.slurm_id);
  return request;
}

std::vector<std::string> Job::Environment(config::Options options) const {
  options.config_file.clear();  // it has been read, and ranks read only their environment
  options.run_directory.clear();
  options.job_id = id_;
  options.job_secret = secret_;
  options.size = size();
  std::vector<std::string> variables = config::EnvironmentFor(options);
  std::erase_if(variables, [](const std::string& entry) {
    return entry.starts_with(kRankName) || entry.starts_with(kNodeName);
  });
  return variables;
}

std::vector<std::string> Job::PlaceOf(uint32_t rank) const {
  const uint32_t node = node_of_rank_[rank];
  return {kRankName + std::to_string(rank), kNodeName + std::to_string(node),
          "FERRY_RUN_DIRECTORY=" + nodes_[node].run_directory};
}

StatusOr<CreatedJob> CreatedJob::Create(const LauncherClient& client,
                                        const control::CreateJobRequest& request) {
  control::CreateJobReply reply;
  grpc::ClientContext context;
  context.AddMetadata(kExitsMetadata, "later");
  FERRY_RETURN_IF_ERROR(client.Call(&LauncherClient::Stub::CreateJob, request, &reply, &context));
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
      id_(std::move(other.id_)),
      exits_(std::move(other.exits_)) {}

CreatedJob::~CreatedJob() {
  if (client_ != nullptr && !is_given_up_) {
    control::DestroyJobRequest request;
    request.set_job_id(id_);
    control::DestroyJobReply reply;
    grpc::ClientContext context;
    if (!exits_.empty()) {
      context.AddMetadata(kExitsMetadata, exits_);
    }
    // A daemon that has died in between has nothing left to destroy.
    (void)client_->Call(&LauncherClient::Stub::DestroyJob, request, &reply, &context);
  }
}

}  // namespace ferry::tools
