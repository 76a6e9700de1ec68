#include "client/mpi/error/last_message.h"

#include <utility>

namespace ferry::mpi {
namespace {

struct Last {
  int error_class = 0;
  std::string sentence;
};
thread_local Last last;

}  // namespace

void Remember(int error_class, std::string sentence) { last = {error_class, std::move(sentence)}; }

const std::string& LastMessage(int error_class) {
  static const std::string none;
  return last.error_class == error_class ? last.sentence : none;
}

}  // namespace ferry::mpi
