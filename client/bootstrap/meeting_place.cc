#include "client/bootstrap/meeting_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

#include "common/number_text.h"
#include "common/unique_fd.h"
#include "config/environment.h"

namespace ferry::client {
namespace {

constexpr uint32_t kMostRanks = 1'000'000;  // as option `size` allows
constexpr size_t kLeastSecretBytes = 16;    // what can be guessed could be tried on a recording
constexpr size_t kMostSecretBytes = 4096;
constexpr uint16_t kLastPort = 65535;
constexpr char kSecretName[] = "FERRY_JOB_SECRET";
constexpr char kSecretFileName[] = "FERRY_JOB_SECRET_FILE";
constexpr char kRunName[] = "TORCHELASTIC_RUN_ID";
constexpr char kPortName[] = "FERRY_MEETING_PORT";

Status Mistake(const std::string& words) { return {ErrorCode::kConfiguration, words}; }

class Variables {
 public:
  explicit Variables(const char* const* environment) : environment_(environment) {}

  // Empty: it is not set.
  std::string Text(std::string_view name) const {
    return std::string(config::FindVariable(environment_, name).value_or(""));
  }
  // `fallback` where it is not set.
  StatusOr<uint32_t> Number(const std::string& name, uint32_t fallback, uint32_t least,
                            uint32_t most) const {
    const std::string text = Text(name);
    const std::optional<uint32_t> number = NumberIn<uint32_t>(text);
    if (text.empty()) {
      return fallback;
    }
    if (!number || *number < least || *number > most) {
      return Mistake(name + "=" + text.substr(0, 100) + " is no number from " +
                     std::to_string(least) + " to " + std::to_string(most));
    }
    return *number;
  }

 private:
  const char* const* const environment_;
};

std::string WithoutEnd(std::string text) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != std::string_view::npos) {
    text.pop_back();
  }
  return text;
}

StatusOr<std::string> ReadSecretFile(const std::string& path) {
  const std::string what = std::string(kSecretFileName) + "=" + path;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file.valid() || fstat(file.get(), &about) != 0) {
    return Mistake(StatusFromErrno(errno, what).message());
  }
  if (!S_ISREG(about.st_mode) || (about.st_mode & S_IRWXO) != 0) {
    return Mistake(what + (S_ISREG(about.st_mode) ? " is open to other users: chmod 600 it"
                                                  : " is no ordinary file"));
  }
  std::array<char, kMostSecretBytes + 1> bytes;
  const ssize_t size = read(file.get(), bytes.data(), bytes.size());
  if (size < 0 || static_cast<size_t>(size) > kMostSecretBytes) {
    return Mistake(what + " cannot be read, or has more than " + std::to_string(kMostSecretBytes) +
                   " bytes");
  }
  return std::string(bytes.data(), static_cast<size_t>(size));
}

// Empty: there is none.
StatusOr<std::string> ReadSecret(const Variables& variables, const config::Options& options) {
  const std::string path = variables.Text(kSecretFileName);
  std::string secret = options.job_secret;
  if (!path.empty() && !secret.empty()) {
    return Mistake(std::string("both ") + kSecretName + " and " + kSecretFileName +
                   " are set: unset one");
  }
  if (!path.empty()) {
    StatusOr<std::string> text = ReadSecretFile(path);
    FERRY_RETURN_IF_ERROR(text.status());
    secret = WithoutEnd(std::move(*text));
  }
  if ((!path.empty() || !secret.empty()) && secret.size() < kLeastSecretBytes) {
    return Mistake(std::string(path.empty() ? kSecretName : kSecretFileName) + " has a secret of " +
                   std::to_string(secret.size()) + " bytes, and needs at least " +
                   std::to_string(kLeastSecretBytes) + ": openssl rand -hex 32");
  }
  return secret;
}

StatusOr<daemon::HostPort> ReadAddress(const Variables& variables) {
  const StatusOr<uint32_t> master = variables.Number("MASTER_PORT", 0, 1, kLastPort);
  FERRY_RETURN_IF_ERROR(master.status());
  const StatusOr<uint32_t> own = variables.Number(kPortName, *master + 1, 1, kLastPort);
  FERRY_RETURN_IF_ERROR(own.status());
  if (*own > kLastPort) {
    return Mistake("MASTER_PORT=" + std::to_string(*master) + " is the last port, and the ranks " +
                   "would meet at the next one: set " + kPortName +
                   " to a free port of rank 0's "
                   "host");
  }
  return daemon::HostPort{variables.Text("MASTER_ADDR"), static_cast<uint16_t>(*own)};
}

Status NoSecret(const MeetingPlace& place) {
  return Mistake(
      std::to_string(place.size) + " ranks (WORLD_SIZE) meet at MASTER_ADDR=" + place.address.host +
      ", perhaps over the network, which takes a secret that all of them know: write one into a "
      "file by `openssl rand -hex 32 >job.secret; chmod 600 job.secret`, where all nodes have it, "
      "and start the job with FERRY_JOB_SECRET_FILE=$PWD/job.secret. On one node, set "
      "LOCAL_WORLD_SIZE=" +
      std::to_string(place.size) + " or MASTER_ADDR=localhost instead");
}

}  // namespace

bool HasMeetingPlace(const char* const* environment) {
  const Variables variables(environment);
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    if (variables.Text(name).empty()) {
      return false;
    }
  }
  return true;
}

bool IsUnderTorchrun(const char* const* environment) {
  return config::FindVariable(environment, kRunName).has_value();
}

StatusOr<MeetingPlace> ReadMeetingPlace(const char* const* environment,
                                        const config::Options& options) {
  const Variables variables(environment);
  MeetingPlace place;
  const StatusOr<uint32_t> size = variables.Number("WORLD_SIZE", 1, 1, kMostRanks);
  FERRY_RETURN_IF_ERROR(size.status());
  // A rank beyond the job's is told so by rank 0, and with it all the others.
  const StatusOr<uint32_t> rank = variables.Number("RANK", 0, 0, kMostRanks - 1);
  FERRY_RETURN_IF_ERROR(rank.status());
  const StatusOr<uint32_t> local_size = variables.Number("LOCAL_WORLD_SIZE", 0, 1, kMostRanks);
  FERRY_RETURN_IF_ERROR(local_size.status());
  const StatusOr<uint32_t> local_rank = variables.Number("LOCAL_RANK", 0, 0, kMostRanks - 1);
  FERRY_RETURN_IF_ERROR(local_rank.status());
  place.size = *size;
  place.rank = *rank;
  place.local_rank = *local_rank;
  if (place.size == 1 && place.rank != 0) {
    return Mistake("RANK=" + std::to_string(place.rank) + ", but WORLD_SIZE=1");
  }
  StatusOr<daemon::HostPort> address = ReadAddress(variables);
  FERRY_RETURN_IF_ERROR(address.status());
  place.address = std::move(*address);
  StatusOr<std::string> secret = ReadSecret(variables, options);
  FERRY_RETURN_IF_ERROR(secret.status());
  place.secret = std::move(*secret);
  const bool is_one_node = *size == 1 || *local_size == *size;
  place.calls_locally = is_one_node || daemon::CheckLoopback(place.address.host).ok();
  place.serves_port = !is_one_node && !place.secret.empty();
  place.local_name =
      "ferry-meeting-" + std::to_string(geteuid()) + "-" + std::to_string(place.address.port);
  place.job = variables.Text(kRunName);
  if (place.secret.empty() && !place.calls_locally) {
    return NoSecret(place);
  }
  return place;
}

}  // namespace ferry::client
