// The launches that a program of OpenCL's is told to try: arguments GROUPSxSIZE.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace ferry::opencl {

struct LaunchShape {
  size_t groups;
  size_t size;
};

inline std::vector<LaunchShape> ShapesOf(int argc, char** argv) {
  std::vector<LaunchShape> shapes;
  for (int i = 1; i < argc; ++i) {
    char* rest = nullptr;
    const size_t groups = std::strtoul(argv[i], &rest, 10);
    shapes.push_back({groups, std::strtoul(rest + 1, nullptr, 10)});
  }
  return shapes;
}

}  // namespace ferry::opencl
