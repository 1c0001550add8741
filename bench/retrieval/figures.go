package retrieval

import (
	"runtime"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// publishedRetrieval is a line of a table in the published study that this benchmark repeats: SPL, "How Slow Is
// Database I/O?", 2022.
type publishedRetrieval struct {
	way     string
	seconds float64 // time to read all rows of the table
	rows    float64
	readers float64    // for several readers, their speed divided by that of one reader; 0 for one reader
	ours    report.Ref // our path that reads in the same way as the study; empty for none
}

func (p publishedRetrieval) perSecond() float64 { return p.rows / p.seconds }

// The published results for the table customer, with 30 million rows. For several readers, the study does not give
// seconds. It says how many times as fast several readers were as one reader.
var publishedCustomer = []publishedRetrieval{
	{way: "Oracle, JDBC, SPL: 280 s", rows: 30e6, seconds: oracleSeconds, ours: report.RefTo(oneStream, splSpanner)},
	{way: "Oracle, 6 readers", rows: 30e6, seconds: oracleSeconds / 5, readers: 5, ours: report.RefTo(readers(6), viaKeyRanges)},
	{way: "MySQL, JDBC, SPL: 380 s", rows: 30e6, seconds: mysqlSeconds, ours: report.RefTo(oneStream, "MySQL, go-sql-driver")},
	{way: studyText + ": 42 s", rows: 30e6, seconds: textSeconds, ours: report.RefTo(oneStream, splText)},
}

// The published results for the table orders, with 300 million rows.
var publishedOrders = []publishedRetrieval{
	{way: studyText + ": 483 s", rows: 300e6, seconds: 483, ours: report.RefTo(oneStream, splText)},
	{way: "text file, 4 readers", rows: 300e6, seconds: 483 / 3.6, readers: 3.6, ours: report.RefTo(readers(4), textTitle)},
	{way: "composite table, SPL: 164 s", rows: 300e6, seconds: 164, ours: report.RefTo(oneStream, splComposite)},
	{way: "composite table, 4 readers", rows: 300e6, seconds: 164 / 3.8, readers: 3.8},
}

// How many seconds it took to read all rows of the table customer, according to the published study.
const (
	oracleSeconds = 280.
	mysqlSeconds  = 380.
	textSeconds   = 42.
)

// publishedOf returns the published result that corresponds to the measure ref of this run: the one whose field ours is
// ref. It returns nil if there is none.
func publishedOf(list []publishedRetrieval, ref report.Ref) *publishedRetrieval {
	for i := range list {
		if list[i].ours == ref {
			return &list[i]
		}
	}
	return nil
}

const studyText = "text file, SPL"

// publishedFigures returns the published figures for the table, to compare them with ours.
func (b *retrieval) publishedFigures() []report.Figure {
	perSecond := func(name string, left report.Ref, published float64, right report.Ref, beside float64) report.Figure {
		return report.Figure{Name: name, Metric: report.RowThroughput, Left: left, Right: right, StudyLeft: published, StudyRight: beside}
	}
	one := func(path string) report.Ref { return report.RefTo(oneStream, path) }
	if b.table.name != "customer" {
		return []report.Figure{
			perSecond("SPL: composite table / text", one(splComposite), 300e6/164, one(splText), 300e6/483),
			perSecond("text file, 4 readers / 1", report.RefTo(readers(4), textTitle), 3.6*300e6/483, report.RefTo(readers(1), textTitle), 300e6/483),
		}
	}
	const oracle, mysql, text = 30e6 / oracleSeconds, 30e6 / mysqlSeconds, 30e6 / textSeconds
	list := []report.Figure{
		// The study compares two rates of rows: rows from a database cursor, each turned into an object, and rows from
		// a text file.
		perSecond("rows as objects by a database cursor / text: Oracle there, SQL here", one(officialSQL), oracle, one(textTitle), text),
		perSecond("rows as objects by a database cursor / text: MySQL there, SQL here", one(officialSQL), mysql, one(textTitle), text),
		perSecond("SPL over JDBC / its text: Oracle there, Crowfoot's Flight SQL here", one(splFlight), oracle, one(splText), text),
		perSecond("SPL over JDBC / its text: MySQL there, Crowfoot's Flight SQL here", one(splFlight), mysql, one(splText), text),
		perSecond("SPL over JDBC / its text: Oracle there, Google's Spanner driver here", one(splSpanner), oracle, one(splText), text),
		perSecond("6 readers by key ranges / 1: Oracle there, SQL here", report.RefTo(readers(6), viaKeyRanges), 5*oracle, report.RefTo(readers(1), viaKeyRanges), oracle),
	}
	list[0].Summed, list[1].Summed = true, true
	return list
}

// scaled returns a target: two streams together should read at least this many times as fast as one stream. The target
// is lower if the machine does not have two cores each for server and client.
func scaled() float64 {
	if runtime.NumCPU() >= 4 {
		return 1.5
	}
	return 1
}

// figures returns the published figures and the targets. The report leaves out a figure if one of the figure's paths
// was not measured.
func (b *retrieval) figures() []report.Figure {
	rows := func(name string, left, right report.Ref, least float64) report.Figure {
		return report.Figure{Name: name, Metric: report.RowThroughput, Left: left, Right: right, Target: least, AtLeast: true}
	}
	one := func(path string) report.Ref { return report.RefTo(oneStream, path) }
	cpu := func(path string) report.Figure {
		return report.Figure{Name: path + ": server CPU of a row", Metric: report.RowCPU, Left: one(path), Target: 0.5}
	}
	return append(b.publishedFigures(), []report.Figure{
		rows("Flight SQL, one stream / text, one thread", one(viaFlight), one(textTitle), 2),
		rows("text, our cursor / SPL's", one(textTitle), one(splText), 1),
		rows("Flight SQL, one stream / pyarrow, our Parquet", one(viaFlight), one(pyarrowParquet), 1),
		rows("Flight SQL, one stream / pyarrow, its Parquet", one(viaFlight), one(pyarrowOwn), 1),
		rows("Flight SQL, two streams / one", one(twoFlights), one(viaFlight), scaled()),
		{Name: "Flight SQL, two streams / one: server CPU of a row", Metric: report.RowCPU, Left: one(twoFlights), Right: one(viaFlight), Target: 1.1},
		rows("Flight SQL / canned batches", one(viaFlight), one(cannedFlight), 0),
		rows("SPL over Flight SQL's JDBC driver, Crowfoot / canned batches", one(splFlight), one(splCanned), 0.9),
		rows("row cursor, hand-written decoder / canned frames", one(rawSQL), one(rawCanned), 0.8),
		rows("READ, hand-written decoder / canned frames", one(rawREAD), one(rawCanned), 0.8),
		rows("row cursor, Go client / canned frames", one(officialSQL), one(cannedGo), 0.95),
		rows("READ, Go client / canned frames", one(officialREAD), one(cannedGo), 0.95),
		cpu(rawSQL), cpu(rawREAD),
		rows("Flight SQL, columnar copy / row store", one(viaFlight), one(viaFlight+noColumnar), 0),
		{Name: "aggregate, columnar copy / DuckDB on Parquet", Metric: report.MedianLatency, Left: report.RefTo(aggregated, insideCopy), Right: report.RefTo(aggregated, insideDuckDB), Target: 2},
		{Name: "aggregate, row store / PostgreSQL", Metric: report.MedianLatency, Left: report.RefTo(aggregated, insideRows), Right: report.RefTo(aggregated, insidePrefix+"PostgreSQL"), Target: 1},
	}...)
}
