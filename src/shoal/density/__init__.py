"""Classes by how rows look and how they shift: densities with a mix per domain."""
