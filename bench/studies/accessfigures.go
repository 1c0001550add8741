package studies

import (
	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// readsOfSplits is how many READs the statistics in studyOfReads count for one call that reads keys in four splits: one
// for each split.
const readsOfSplits = 4

// publishedAverages has the figures that the study published, which the constant studyOfReads names. Cloud Spanner's
// statistics tables averaged them over one interval of ten minutes. Latency and CPU are in microseconds.
var publishedAverages = map[report.Ref]report.Averages{
	report.RefTo(oneKey, viaSQL):     {Executions: 2_759_475, Latency: known(537), CPU: 155, Rows: 1, Bytes: 1048.7, RemoteCalls: known(0)},
	report.RefTo(oneKey, viaREAD):    {Executions: 2_773_258, CPU: 149, LeaderRefreshDelay: known(381), Rows: 1, Bytes: 1055.8},
	report.RefTo(rangeRead, viaSQL):  {Executions: 2_584_896, Latency: known(691), CPU: 305, Rows: 10, Bytes: 10448.1, RemoteCalls: known(0)},
	report.RefTo(rangeRead, viaREAD): {Executions: 2_634_410, CPU: 169, LeaderRefreshDelay: known(382), Rows: 10, Bytes: 10449.7},
	report.RefTo(scattered, viaSQL):  {Executions: 1_087_848, Latency: known(2391), CPU: 1532, Rows: 10, Bytes: 10391, RemoteCalls: known(4)},
	report.RefTo(scattered, viaREAD): {Executions: 4_449_029, CPU: 139, LeaderRefreshDelay: known(313), Rows: 2.5, Bytes: 2607.2},
}

func known(v float64) *float64 { return &v }

// publishedCPU returns the study's AVG_CPU_SECONDS of one operation, in microseconds.
func publishedCPU(experiment, path string) float64 {
	ref := report.RefTo(experiment, path)
	cpu := publishedAverages[ref].CPU
	if ref == report.RefTo(scattered, viaREAD) {
		cpu *= readsOfSplits
	}
	return cpu
}

const (
	processBasis  = "study: the server's averages of ten minutes (AVG_CPU_SECONDS); ours: CPU time of the whole server process per operation"
	averagesBasis = "study and ours: the server's averages of one interval (AVG_CPU_SECONDS)"
	splitsBasis   = "; the study's READ counts once for each of four splits, so its average is taken four times"
)

// accessFigures returns the figures of studyOfReads beside Crowfoot's targets. It leaves out the figures for ranges and
// for scattered keys if the run does not read ten keys of four splits. Without Settings.Study, the figures compare the
// CPU time of the server's process. With Settings.Study, they compare averages of the server's statistics, as the study
// does. These averages have no targets: they are taken once for an interval and not for each turn, so nobody can tell
// how much they vary by chance.
func accessFigures(s bench.Settings) []report.Figure {
	metric, basis := report.ServerCPU, processBasis
	if s.Study {
		metric, basis = report.AverageCPU, averagesBasis
	}
	cpu := func(name, left, leftPath, right, rightPath string, target float64) report.Figure {
		f := report.Figure{
			Name: name, Metric: metric, Left: report.RefTo(left, leftPath), Right: report.RefTo(right, rightPath), Target: target, Basis: basis,
			StudyLeft: publishedCPU(left, leftPath), StudyRight: publishedCPU(right, rightPath), Summed: left == right,
		}
		if leftPath == viaREAD || rightPath == viaREAD && left == scattered {
			f.Basis += splitsBasis
		}
		return f
	}
	list := []report.Figure{cpu("SQL / READ CPU, one key", oneKey, viaSQL, oneKey, viaREAD, 1.05)}
	if s.Keys == bench.StudyKeys && s.Splits == bench.StudySplits {
		list = append(list,
			cpu("SQL / READ CPU, range of ten", rangeRead, viaSQL, rangeRead, viaREAD, 1.10),
			cpu("SQL / READ CPU, ten scattered keys over four splits", scattered, viaSQL, scattered, viaREAD, 1.15),
			cpu("SQL CPU: ten scattered keys / one key", scattered, viaSQL, oneKey, viaSQL, 2.5),
			cpu("READ CPU: ten scattered keys / one key", scattered, viaREAD, oneKey, viaREAD, 2.5),
		)
	}
	if !s.Study {
		return list
	}
	for i := range list {
		list[i].Target = 0
	}
	for _, e := range []struct{ name, title string }{{oneKey, "one key"}, {rangeRead, "range"}, {scattered, "scattered keys"}, {covering, "covering index"}, {backJoin, "index not covering"}} {
		list = append(list, report.Figure{Name: "READ / SQL at saturation, " + e.title, Metric: report.Throughput, Left: report.RefTo(e.name+atSaturation, viaREAD), Right: report.RefTo(e.name+atSaturation, viaSQL)})
	}
	return list
}
