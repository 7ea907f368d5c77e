//go:build !race

package canary

const raceDetector = false
