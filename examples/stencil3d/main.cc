// stencil3d: a seven-point stencil whose faces, up to six a rank, travel all at once.
#include "examples/common/stencil.h"
#include "examples/stencil3d/block.h"

int main(int argc, char** argv) {
  const examples::StencilProgram program = {
      "stencil3d",
      "a seven-point stencil in space, divided among the ranks along three axes",
      {98, 98, 98},
      3,
      false};
  return examples::StencilMain(argc, argv, program, stencil3d::Space::Make);
}
