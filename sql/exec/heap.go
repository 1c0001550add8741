package exec

// sink moves entry i of a heap down to its place. The first entry of a heap comes before all others.
func sink(heap []int, i int, before func(a, b int) bool) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if before(heap[child], heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}
